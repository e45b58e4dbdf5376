//! Backpressure both ways, closing, pings, and frames in bulk.

use std::time::{Duration, Instant};

use relaysync::native::SocketConfig;
use relaysync::runtime::{CloseReason, FrameReceiver, FrameSender, SendError};
use tokio::io::AsyncWriteExt;
use tokio::sync::{oneshot, watch};

use super::peer::*;

#[tokio::test]
async fn a_receiver_that_does_not_read_stops_the_relay() {
    let (count, mut counted) = watch::channel(0_u64);
    let address = relay(move |mut socket| async move {
        let block = frame(FIN | TEXT, &[b'x'; 60_000]);
        while socket.write_all(&block).await.is_ok() {
            count.send_modify(|count| *count += 1);
        }
    })
    .await;
    let (mut sender, mut receiver) = connect(&address).await;
    let mut frames = Vec::new();
    within(receiver.receive(&mut frames)).await.unwrap();
    sender.set_reading(false);
    // The relay goes on until the buffers of the system are full; then it is stopped.
    while tokio::time::timeout(Duration::from_millis(300), counted.changed()).await.is_ok() {
        assert!(*counted.borrow() < 1000, "60 MB were sent to somebody who does not read");
    }
    let waiting = tokio::time::timeout(Duration::from_millis(50), receiver.receive(&mut frames)).await;
    assert!(waiting.is_err(), "it is not reading");
    let stopped_at = *counted.borrow();
    sender.set_reading(true);
    within(async {
        while *counted.borrow() < stopped_at + 20 {
            receiver.receive(&mut frames).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_waiting_receiver_is_woken_by_reading_again() {
    let (go, gone) = oneshot::channel();
    let address = relay(|mut socket| async move {
        gone.await.unwrap();
        socket.write_all(&frame(FIN | TEXT, b"[]")).await.unwrap();
        hold(socket).await;
    })
    .await;
    let (mut sender, mut receiver) = connect(&address).await;
    sender.set_reading(false);
    let received = tokio::spawn(async move {
        let mut frames = Vec::new();
        receiver.receive(&mut frames).await.map(|()| frames.len())
    });
    go.send(()).unwrap();
    tokio::task::yield_now().await;
    sender.set_reading(true);
    assert_eq!(within(received).await.unwrap(), Ok(1));
}

#[tokio::test]
async fn the_outbound_queue_is_bounded_in_bytes() {
    let address = relay(|socket| async move {
        std::future::pending::<()>().await;
        drop(socket);
    })
    .await;
    let config = SocketConfig {
        outbound_bytes_max: 100_000,
        write_timeout: Duration::from_millis(200),
        ..SocketConfig::default()
    };
    let (mut sender, mut receiver) = connect_with(&address, config).await.unwrap();
    assert_eq!(sender.try_send("x".repeat(100_001)), Err(SendError::Full), "larger than the queue");
    let mut sent_bytes = 0;
    within(async {
        // The system's buffers take some megabytes first.
        while sender.try_send("x".repeat(50_000)).is_ok() {
            sent_bytes += 50_000;
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(sent_bytes < 100_000_000);
    assert_eq!(drain(&mut receiver).await.1, CloseReason::Backlogged);
    assert_eq!(sender.try_send("x".into()), Err(SendError::Closed));
}

#[tokio::test]
async fn frames_arrive_whole_and_in_order() {
    const FRAMES: usize = 20_000;
    let address = relay(|mut socket| async move {
        for index in 0..FRAMES {
            let (first, payload) = read_frame(&mut socket).await.unwrap();
            assert_eq!((first, payload), (FIN | TEXT, format!("[{index}]").into_bytes()));
        }
        let mut bytes = Vec::new();
        for index in 0..FRAMES {
            bytes.extend(frame(FIN | TEXT, format!("[{index}]").as_bytes()));
        }
        socket.write_all(&bytes).await.unwrap();
        socket.write_all(&frame(FIN | CLOSE, b"\x03\xe8")).await.unwrap();
        hold(socket).await;
    })
    .await;
    let (mut sender, mut receiver) = connect(&address).await;
    for index in 0..FRAMES {
        sender.try_send(format!("[{index}]")).unwrap();
    }
    let (frames, reason) = drain(&mut receiver).await;
    assert_eq!(reason, CloseReason::Remote("1000".into()));
    assert!(frames.iter().enumerate().all(|(index, text)| *text == format!("[{index}]")));
    assert_eq!(frames.len(), FRAMES);
}

#[tokio::test]
async fn closing_sends_what_waits_and_says_goodbye() {
    let (done, seen) = oneshot::channel();
    let address = relay(|mut socket| async move {
        let text = read_frame(&mut socket).await.unwrap();
        let goodbye = read_frame(&mut socket).await.unwrap();
        done.send((text, goodbye)).unwrap();
    })
    .await;
    let (mut sender, mut receiver) = connect(&address).await;
    sender.try_send("[\"CLOSE\",\"s\"]".into()).unwrap();
    sender.close();
    assert_eq!(sender.try_send("late".into()), Err(SendError::Closed));
    assert_eq!(drain(&mut receiver).await.1, CloseReason::Done);
    let (text, goodbye) = within(seen).await.unwrap();
    assert_eq!(text, (FIN | TEXT, b"[\"CLOSE\",\"s\"]".to_vec()));
    assert_eq!(goodbye, (FIN | CLOSE, vec![3, 0xe8]));
}

#[tokio::test]
async fn closing_does_not_wait_for_a_relay_that_is_stuck() {
    let (leave, left) = oneshot::channel();
    let (go, gone) = oneshot::channel();
    let address = relay(|socket| async move {
        gone.await.unwrap();
        hold(socket).await;
        leave.send(()).unwrap();
    })
    .await;
    let (mut sender, receiver) = connect(&address).await;
    while sender.try_send("x".repeat(500_000)).is_ok() {
        tokio::task::yield_now().await;
    }
    let closed = Instant::now();
    drop(sender);
    drop(receiver);
    // The time for closing is half a second; only then does the relay read again, up to the end.
    tokio::time::sleep(SocketConfig::default().close_timeout).await;
    go.send(()).unwrap();
    within(left).await.unwrap();
    assert!(closed.elapsed() < Duration::from_secs(2), "{:?}", closed.elapsed());
}

#[tokio::test]
async fn pings_are_answered_and_a_flood_of_them_is_bounded() {
    const PINGS: usize = 5_000;
    let (done, seen) = oneshot::channel();
    let address = relay(|mut socket| async move {
        for index in 0..PINGS {
            socket.write_all(&frame(FIN | PING, index.to_string().as_bytes())).await.unwrap();
        }
        let last = (PINGS - 1).to_string().into_bytes();
        loop {
            let (first, payload) = read_frame(&mut socket).await.unwrap();
            assert_eq!(first, FIN | PONG);
            if payload == last {
                break;
            }
        }
        done.send(()).unwrap();
        hold(socket).await;
    })
    .await;
    let (_sender, mut receiver) = connect(&address).await;
    let receiving = tokio::spawn(async move { receiver.receive(&mut Vec::new()).await });
    within(seen).await.unwrap();
    receiving.abort();
}

#[tokio::test]
async fn what_is_handed_over_at_once_is_bounded() {
    let address = relay(|mut socket| async move {
        let mut bytes = Vec::new();
        for _ in 0..100 {
            bytes.extend(frame(FIN | TEXT, b"[]"));
        }
        socket.write_all(&bytes).await.unwrap();
        hold(socket).await;
    })
    .await;
    let config = SocketConfig { receive_frames_max: 7, ..SocketConfig::default() };
    let (_sender, mut receiver) = connect_with(&address, config).await.unwrap();
    let mut total = 0;
    while total < 100 {
        let mut frames = Vec::new();
        within(receiver.receive(&mut frames)).await.unwrap();
        assert!((1..=7).contains(&frames.len()));
        total += frames.len();
    }
    assert_eq!(total, 100);
}
