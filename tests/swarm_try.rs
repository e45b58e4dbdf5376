use relaysync::sim::swarm::{Options, run};
#[test]
fn try_it() {
    let from: u64 = std::env::var("FROM").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let n: u64 = std::env::var("N").ok().and_then(|s| s.parse().ok()).unwrap_or(50);
    let tell = std::env::var("TELL").is_ok();
    let mut bad = 0;
    let t = std::time::Instant::now();
    let mut whys = std::collections::BTreeMap::new();
    for seed in from..from + n {
        let t1 = std::time::Instant::now();
        match run(
            seed,
            &Options {
                planted: std::env::var("PLANTED")
                    .ok()
                    .and_then(|name| relaysync::engine::Planted::ALL.into_iter().find(|p| p.name() == name)),
                tell: tell.then_some(|l: &str| println!("{l}")),
            },
        ) {
            Ok(s) => println!(
                "{seed} ok {:x} {:?} virt {:?} conv {:?} handles {} ev {}",
                s.trace_hash,
                t1.elapsed(),
                s.virtual_time,
                s.converged_after,
                s.handles,
                s.events
            ),
            Err(f) => {
                bad += 1;
                let why: String = f.why.chars().take(100).collect();
                println!("{seed} FAIL {:?} {}", t1.elapsed(), f.why.chars().take(300).collect::<String>());
                whys.entry(why).or_insert_with(Vec::new).push(seed);
                if n == 1 {
                    println!("{f}");
                }
            }
        }
    }
    println!("== {bad} failed of {n} in {:?}", t.elapsed());
    for (why, seeds) in whys {
        println!("{:3} {why} {:?}", seeds.len(), &seeds[..seeds.len().min(5)]);
    }
}
