//! The same in memory: a semaphore for each lane, a channel and a worker for each session. Nothing is kept, nothing starts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Semaphore, mpsc};

use crate::{LaneOf, Measured, Size, agent, judge};

pub(crate) fn measure(size: Size, lane_of: LaneOf) -> Measured {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    runtime.block_on(run(size, lane_of))
}

async fn run(size: Size, lane_of: LaneOf) -> Measured {
    let lanes: BTreeMap<&str, Arc<Semaphore>> =
        ["main", "subagent", "delegate"].map(|lane| (lane, Arc::new(Semaphore::new(judge::limit(lane))))).into();
    let begin = Instant::now();
    let mut workers = Vec::new();
    for session in 0..size.sessions {
        let (sender, mut messages) = mpsc::channel(size.messages);
        for n in 0..size.messages {
            sender.send(n).await.expect("there is room");
        }
        drop(sender);
        let lane = Arc::clone(&lanes[lane_of(session)]);
        workers.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            while let Some(n) = messages.recv().await {
                let _place = lane.acquire().await.expect("it stays open");
                tokio::time::sleep(agent::takes(&format!("dm:{session}"), &n.to_string())).await;
                latencies.push(begin.elapsed());
            }
            latencies
        }));
    }
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await.expect("it works"));
    }
    Measured { time: begin.elapsed(), latencies }
}
