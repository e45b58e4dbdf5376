//! Is the daemon alive, and is it of use? In words for whoever has to find out why not.

use super::AdminConfig;
use super::report::DaemonReport;
use crate::runtime::Instant;

/// Does the engine's loop move, and does somebody report so? Else why not.
pub(super) fn alive(report: &DaemonReport, now: Instant, config: &AdminConfig) -> Result<(), String> {
    let report_age = now - report.made_at;
    if report_age > config.report_age_max {
        return Err(format!("nothing was reported for {} s", report_age.as_secs()));
    }
    let silence = now - report.engine.moved_at;
    if silence > config.engine_silence_max {
        let why = report.engine.last_failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
        return Err(format!("the engine has not moved for {} s{why}", silence.as_secs()));
    }
    Ok(())
}

/// Is the daemon alive, and every part of it ready? Else which is not, and why.
pub(super) fn ready(report: &DaemonReport, now: Instant, config: &AdminConfig) -> Result<(), String> {
    alive(report, now, config)?;
    let faults: Vec<String> = report.readiness.faults().map(|(part, reason)| format!("{part}: {reason}")).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{alive, ready};
    use crate::native::admin::AdminConfig;
    use crate::native::admin::report::{DaemonReport, Readiness, Stage};
    use crate::runtime::Instant;

    fn at(secs: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(secs))
    }

    #[test]
    fn a_loop_that_stands_still_is_not_alive() {
        let config = AdminConfig::default();
        let mut report = DaemonReport::starting(1_700_000_000, at(100));
        assert_eq!(alive(&report, at(100) + config.report_age_max, &config), Ok(()));
        assert_eq!(alive(&report, at(120), &config), Err("nothing was reported for 20 s".to_owned()));
        report.made_at = at(170);
        assert_eq!(alive(&report, at(170), &config), Err("the engine has not moved for 70 s".to_owned()));
        report.engine.last_failure = Some("no space is left".to_owned());
        let words = "the engine has not moved for 70 s: no space is left";
        assert_eq!(alive(&report, at(170), &config), Err(words.to_owned()));
        report.engine.moved_at = at(169);
        assert_eq!(alive(&report, at(170), &config), Ok(()));
    }

    #[test]
    fn it_is_ready_when_every_part_that_is_configured_is() {
        let config = AdminConfig::default();
        let mut report = DaemonReport::starting(1_700_000_000, at(1));
        assert_eq!(ready(&report, at(1), &config), Err("store: the store is not open yet".to_owned()));
        report.readiness = Readiness {
            store: Stage::Ready,
            index: Stage::Pending("12,000 events read so far".to_owned()),
            service: Stage::Pending("not listening yet".to_owned()),
        };
        let words = "index: 12,000 events read so far\nrelay service: not listening yet";
        assert_eq!(ready(&report, at(1), &config), Err(words.to_owned()));
        report.readiness = Readiness { store: Stage::Ready, index: Stage::Ready, service: Stage::Off };
        assert_eq!(ready(&report, at(1), &config), Ok(()));
        assert!(ready(&report, at(90), &config).is_err(), "who is not alive is not ready");
    }
}
