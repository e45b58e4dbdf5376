//! Hostile and broken frames: each ends its connection with the reason's name, after the good frames before it.

use relaysync::runtime::CloseReason;
use tokio::io::AsyncWriteExt;

use super::peer::*;

/// Sends a good frame, then `bytes`; the good one must arrive, and the reason is given back.
async fn reason_for(bytes: Vec<u8>) -> CloseReason {
    let address = relay(|mut socket| async move {
        socket.write_all(&frame(FIN | TEXT, b"[\"NOTICE\",\"good\"]")).await.unwrap();
        // The client may be gone before all of it is written, which is the point.
        let _ = socket.write_all(&bytes).await;
        hold(socket).await;
    })
    .await;
    let (_sender, mut receiver) = connect(&address).await;
    let (frames, reason) = drain(&mut receiver).await;
    assert_eq!(frames, ["[\"NOTICE\",\"good\"]"]);
    assert_eq!(drain(&mut receiver).await, (vec![], reason.clone()), "the reason stays");
    reason
}

fn is_protocol(reason: &CloseReason, word: &str) -> bool {
    matches!(reason, CloseReason::Protocol(detail) if detail.contains(word))
}

#[tokio::test]
async fn oversize_is_refused_by_its_header_alone() {
    assert_eq!(reason_for(header(FIN | TEXT, (1 << 20) + 1)).await, CloseReason::FrameTooLarge);
    assert_eq!(reason_for(header(FIN | TEXT, u64::MAX >> 1)).await, CloseReason::FrameTooLarge);
    assert_eq!(reason_for(header(FIN | BINARY, 1 << 40)).await, CloseReason::FrameTooLarge);
}

#[tokio::test]
async fn small_fragments_add_up() {
    let mut bytes = frame(TEXT, &[b'x'; 1000]);
    for _ in 0..1100 {
        bytes.extend(frame(0, &[b'x'; 1000]));
    }
    assert_eq!(reason_for(bytes).await, CloseReason::FrameTooLarge);
}

#[tokio::test]
async fn a_fragmented_message_within_the_limit_is_one_frame() {
    let address = relay(|mut socket| async move {
        let text = "[\"NOTICE\",\"ä€\"]".as_bytes();
        // The cut goes through the first letter that has two bytes; a ping comes between.
        socket.write_all(&frame(TEXT, &text[..12])).await.unwrap();
        socket.write_all(&frame(FIN | PING, b"?")).await.unwrap();
        socket.write_all(&frame(FIN, &text[12..])).await.unwrap();
        assert_eq!(read_frame(&mut socket).await.unwrap(), (FIN | PONG, b"?".to_vec()));
    })
    .await;
    let (_sender, mut receiver) = connect(&address).await;
    assert_eq!(drain(&mut receiver).await.0, ["[\"NOTICE\",\"ä€\"]"]);
}

#[tokio::test]
async fn text_that_is_not_utf8_is_named() {
    assert_eq!(reason_for(frame(FIN | TEXT, b"[\"\xff\"]")).await, CloseReason::InvalidUtf8);
    let fragments = [frame(TEXT, b"[\"\xe2\x82"), frame(FIN, b"\"]")].concat();
    assert_eq!(reason_for(fragments).await, CloseReason::InvalidUtf8);
}

#[tokio::test]
async fn a_compressed_bomb_is_refused_unopened() {
    // A megabyte of zeros as permessage-deflate would send it.
    let bomb = frame(FIN | RSV1 | TEXT, &[0xec, 0xc1, 0x01, 0x01, 0x00, 0x00, 0x00, 0x80, 0x90, 0xfe, 0xaf]);
    let reason = reason_for(bomb).await;
    assert!(is_protocol(&reason, "compress"), "{reason:?}");
}

#[tokio::test]
async fn breaches_of_the_protocol_are_named() {
    let mut masked = vec![FIN | TEXT, 0x80 | 2, 1, 2, 3, 4];
    masked.extend(b"[]");
    for (bytes, word) in [
        (masked, "masked"),
        (frame(FIN | 0x3, b"[]"), "opcode"),
        (frame(FIN | 0xB, b""), "opcode"),
        (frame(FIN | PING, &[0; 126]), "Control frame too big"),
        (frame(PING, b""), "Fragmented control"),
        (frame(FIN, b"[]"), "nothing to continue"),
        ([frame(TEXT, b"["), frame(FIN | TEXT, b"]")].concat(), "more fragments"),
        (frame(FIN | CLOSE, &[3]), "close"),
        (frame(FIN | BINARY, b"[]"), "binary"),
    ] {
        let reason = reason_for(bytes).await;
        assert!(is_protocol(&reason, word), "{word}: {reason:?}");
    }
}

#[tokio::test]
async fn a_close_gives_its_code_and_words() {
    let reason = reason_for(frame(FIN | CLOSE, b"\x03\xf0go away")).await;
    assert_eq!(reason, CloseReason::Remote("1008 go away".into()));
    assert_eq!(reason_for(frame(FIN | CLOSE, b"\x03\xe8")).await, CloseReason::Remote("1000".into()));
    assert_eq!(reason_for(frame(FIN | CLOSE, b"")).await, CloseReason::Remote(String::new()));
}

#[tokio::test]
async fn a_close_is_answered() {
    let (answer, answered) = tokio::sync::oneshot::channel();
    let address = relay(|mut socket| async move {
        socket.write_all(&frame(FIN | CLOSE, b"\x03\xe8")).await.unwrap();
        answer.send(read_frame(&mut socket).await).unwrap();
    })
    .await;
    let (_sender, mut receiver) = connect(&address).await;
    drain(&mut receiver).await;
    assert_eq!(within(answered).await.unwrap().unwrap(), (FIN | CLOSE, vec![3, 0xe8]));
}

#[tokio::test]
async fn a_lost_link_is_named() {
    let address = relay(|socket| async move { drop(socket) }).await;
    let (_sender, mut receiver) = connect(&address).await;
    let (_, reason) = drain(&mut receiver).await;
    assert_eq!(reason, CloseReason::Io("ended without a closing handshake".into()));

    let reset = relay(|socket| async move {
        socket2::SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    })
    .await;
    let (_sender, mut receiver) = connect(&reset).await;
    let (_, reason) = drain(&mut receiver).await;
    assert!(matches!(&reason, CloseReason::Io(detail) if detail.contains("reset")), "{reason:?}");
}

#[tokio::test]
async fn a_frame_that_drips_is_still_one_frame() {
    let address = relay(|mut socket| async move {
        for byte in frame(FIN | TEXT, b"[\"EOSE\",\"s\"]") {
            socket.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        hold(socket).await;
    })
    .await;
    let (_sender, mut receiver) = connect(&address).await;
    let mut frames = Vec::new();
    within(relaysync::runtime::FrameReceiver::receive(&mut receiver, &mut frames)).await.unwrap();
    assert_eq!(frames[0].as_str(), "[\"EOSE\",\"s\"]");
}

#[tokio::test]
async fn what_comes_with_the_handshake_is_not_lost() {
    let address = listen(|mut socket| async move {
        let head = read_head(&mut socket).await;
        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap().to_owned();
        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        let mut bytes = format!(
            "HTTP/1.1 101 x\r\nupgrade: WebSocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
        )
        .into_bytes();
        bytes.extend(frame(FIN | TEXT, b"[\"AUTH\",\"c\"]"));
        socket.write_all(&bytes).await.unwrap();
    })
    .await;
    let (_sender, mut receiver) = connect(&address).await;
    assert_eq!(drain(&mut receiver).await.0, ["[\"AUTH\",\"c\"]"]);
}

#[tokio::test]
async fn one_bad_connection_does_not_disturb_another() {
    let good = relay(|mut socket| async move {
        let (_, payload) = read_frame(&mut socket).await.unwrap();
        socket.write_all(&frame(FIN | TEXT, &payload)).await.unwrap();
    })
    .await;
    let (mut sender, mut receiver) = connect(&good).await;
    assert_eq!(reason_for(header(FIN | TEXT, 1 << 40)).await, CloseReason::FrameTooLarge);
    relaysync::runtime::FrameSender::try_send(&mut sender, "[\"echo\"]".into()).unwrap();
    assert_eq!(drain(&mut receiver).await.0, ["[\"echo\"]"]);
}
