//! The server: the page, what it shows as server-sent events, a step that it asks for, and one thing that it can ask to be done.
//!
//! It listens on this machine alone, and everything that it serves is in the program or on the board.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    net::TcpListener,
    sync::{Arc, mpsc::Sender},
    thread,
};

use axum::{
    Router,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use futures_util::{Stream, stream};
use tokio::sync::watch::Receiver;

use super::{
    board::{Board, Part},
    host::Address,
    session::News,
    step_page::step_json,
};

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/studio.js");
/// What all pages look like, what programs look like on them, and what is only here.
const STYLES: [&str; 3] = [
    include_str!("../term/page.css"),
    include_str!("../command/show/html/style.css"),
    include_str!("page/studio.css"),
];

/// Nothing is loaded from elsewhere, and nothing runs but our own script.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// What requests are answered from.
#[derive(Clone)]
struct Site {
    address: Address,
    board: Arc<Board>,
    news: Sender<News>,
}

/// Starts to answer, on a thread of its own that ends with the process.
pub(super) fn start(
    listener: TcpListener,
    address: Address,
    board: Arc<Board>,
    news: Sender<News>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let site = Site { address, board, news };
    thread::Builder::new().name("server".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            axum::serve(listener, router(site)).await
        })
    })?;
    Ok(())
}

fn router(site: Site) -> Router {
    Router::new()
        .route("/", get(|| async { text("text/html; charset=utf-8", PAGE.to_owned()) }))
        .route("/studio.css", get(|| async { text("text/css; charset=utf-8", STYLES.concat()) }))
        .route("/studio.js", get(|| async { text("text/javascript; charset=utf-8", SCRIPT.to_owned()) }))
        .route("/events", get(events))
        .route("/steps/{number}", get(step))
        .route("/virtual-gpu", post(virtual_gpu))
        .layer(from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

fn text(mime: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, mime)], text).into_response()
}

/// Refuses what is not for us, and says of each answer what a browser may do with it.
async fn guard(State(site): State<Site>, request: Request, next: Next) -> Response {
    let word = |headers: &HeaderMap, name| {
        headers.get(name).map(|it: &HeaderValue| it.to_str().unwrap_or("").to_owned())
    };
    let (host, origin) = (word(request.headers(), header::HOST), word(request.headers(), header::ORIGIN));
    let mut response = if site.address.is_ours(host.as_deref(), origin.as_deref()) {
        next.run(request).await
    } else {
        let words = format!("tilewright studio answers at {} alone, and to its own page.\n", site.address);
        (StatusCode::FORBIDDEN, words).into_response()
    };
    let rules: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in rules {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What a page has been sent.
struct Sent {
    board: Arc<Board>,
    version: Receiver<u64>,
    last: u64,
    queue: VecDeque<Part>,
}

/// All that the page shows, and then whatever changes. A page that was away is sent all again.
async fn events(State(site): State<Site>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let version = site.board.subscribe();
    let sent = Sent { board: site.board, version, last: 0, queue: VecDeque::new() };
    let all = stream::unfold(sent, |mut sent| async move {
        loop {
            if let Some(part) = sent.queue.pop_front() {
                sent.last = part.version;
                return Some((Ok(Event::default().event(part.sort).data(part.data)), sent));
            }
            sent.version.mark_unchanged();
            sent.queue.extend(sent.board.since(sent.last));
            if sent.queue.is_empty() {
                // The board is gone only with the process.
                sent.version.changed().await.ok()?;
            }
        }
    });
    Sse::new(all).keep_alive(KeepAlive::default())
}

/// The loop nest after a step, and what the step changed.
async fn step(State(site): State<Site>, Path(number): Path<usize>) -> Response {
    match site.board.step(|it| step_json(it, number)) {
        Some(it) => text("application/json", it.to_string()),
        None => (StatusCode::NOT_FOUND, "there is no such step\n").into_response(),
    }
}

/// Runs the program on the virtual GPU.
async fn virtual_gpu(State(site): State<Site>) -> StatusCode {
    match site.news.send(News::Asked) {
        Ok(()) => StatusCode::ACCEPTED,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}
