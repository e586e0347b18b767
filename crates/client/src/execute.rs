//! Batches outside of transactions.
//!
//! Each operation stands for itself, so a batch may be sent again as long as nothing of it can have taken place. A request that was refused as a whole has not; one whose answer was
//! lost has perhaps, and then a batch that only reads is sent again and one that writes has an unknown outcome.
//!
//! In a cluster a request goes to the node that leads what it is about, and plain reads are divided between nodes
//! ([`crate::channel::places`]). What fails there temporarily is repeated as a whole by the present connection.

use crate::batch::{Answer, Answers, BatchResult};
use crate::channel::places::division::{Dealt, Division};
use crate::channel::{Ask, CallError, Effect, Line};
use crate::client::{Client, Pauses};
use crate::{Batch, Error, ErrorKind};
use bytes::Bytes;
use futures::future::try_join_all;
use rauk_wire::{BatchOptions, Kind};
use smallvec::smallvec;
use std::sync::Arc;

/// What is worth another attempt without the program's doing. Waits that were long already (locks, deadlines) and lack of room are the program's to judge.
pub(crate) fn worth_retrying(error: &Error) -> bool {
    use ErrorKind::*;
    matches!(error.kind, Deadlock | Conflict | SchemaChanged | Disconnected | Busy)
}

impl Client {
    /// Each operation for itself, in one round trip (in several when it is larger than one request takes).
    pub async fn execute(&self, mut batch: Batch) -> Result<BatchResult, Error> {
        match self.at_once(&mut batch) {
            Some(result) => result,
            // Boxed, so that the future of what is answered at once is small.
            None => Box::pin(self.execute_waiting(batch)).await,
        }
    }

    /// Reads of an embedded database, which need hardly ever wait: takes the batch when it is answered, leaves it when it must wait, or when there is anything to be said about it.
    #[inline]
    pub(crate) fn at_once(&self, batch: &mut Batch) -> Option<Result<BatchResult, Error>> {
        let plain = self.channel().is_local()
            && !batch.writes()
            && batch.parts() == 1
            && !batch.is_empty()
            && batch.mistake().is_none()
            && batch.known().iter().all(|known| known.table.client().is(self) && known.opened.epoch == 0);
        if !plain {
            return None;
        }
        let options = BatchOptions::default();
        let build = |out| batch.build(0, &options, out);
        match self.channel().at_once(Ask::new(Kind::Batch), self.timeout(), build) {
            Some((Kind::BatchAnswer, payload)) => {
                Some(BatchResult::new(std::mem::take(batch), smallvec![Answer::whole(0, payload)]))
            }
            // Refused as a whole, or not looked at: it is asked again.
            _ => None,
        }
    }

    async fn execute_waiting(&self, mut batch: Batch) -> Result<BatchResult, Error> {
        let mut answers = Answers::new();
        if batch.is_empty() {
            return BatchResult::new(batch, answers);
        }
        self.check(&batch).await?;
        for part in 0..batch.parts() {
            let (first, _) = batch.range(part);
            match self.execute_part(&mut batch, part).await {
                Ok(parts) => answers.extend(parts),
                Err(error) if part > 0 && batch.writes() => {
                    let why = format!("the first {first} operations took place, then: {error}");
                    return Err(Error::outcome_unknown(why));
                }
                Err(error) => return Err(error),
            }
        }
        BatchResult::new(batch, answers)
    }

    /// Tells the mistakes that were made when the batch was built.
    pub(crate) async fn check(&self, batch: &Batch) -> Result<(), Error> {
        if let Some((error, table, generation)) = batch.mistake() {
            return Err(Box::pin(self.judge(error.clone(), table, generation)).await);
        }
        match batch.known().iter().find(|known| !known.table.client().is(self)) {
            Some(known) => {
                let message = format!("table '{}' was opened by another client", known.opened.name);
                Err(Error::new(ErrorKind::Refused, 0, message))
            }
            None => Ok(()),
        }
    }

    /// A mistake may be none by the newest definition: then the program may build the batch again.
    async fn judge(&self, error: Error, table: &crate::Table, generation: u32) -> Error {
        let by_definition = matches!(
            error.kind,
            ErrorKind::UnknownColumn | ErrorKind::UnknownIndex | ErrorKind::WrongType | ErrorKind::InvalidValue
        );
        if !by_definition || !table.client().is(self) {
            return error;
        }
        if table.generation() == generation
            && let Ok(line) = self.line(None).await
        {
            let before = table.current();
            if table.refresh(&line, &before).await.is_err() {
                return error;
            }
        }
        if table.generation() == generation {
            return error;
        }
        Error::new(ErrorKind::SchemaChanged, rauk_types::error::codes::TABLE_DEF_CHANGED, error.message)
    }

    async fn execute_part(&self, batch: &mut Batch, part: usize) -> Result<Answers, Error> {
        let (first, _) = batch.range(part);
        let (mut pauses, mut is_new) = (None, true);
        loop {
            // What has failed at the nodes that lead it goes by the present connection, and definitions come by that.
            let dealt = match is_new && batch.is_of(self.channel().epoch()) {
                true => self.channel().deal(batch.located(part)),
                false => Dealt::Together(None),
            };
            let by_leaders = !matches!(dealt, Dealt::Together(None));
            is_new = false;
            let (line, tried) = match dealt {
                Dealt::Together(connection) => {
                    let line = match connection {
                        Some(connection) => Line::Remote(connection),
                        None => self.line(None).await?,
                    };
                    let tried = self.try_part(&line, batch, part).await;
                    (line, tried.map(|payload| smallvec![Answer::whole(first, payload)]))
                }
                Dealt::Divided(division) => Box::pin(self.try_divided(division, batch, part)).await?,
            };
            let error = match tried {
                Ok(answers) => return Ok(answers),
                Err(error) => error.error,
            };
            // A node may hear of a definition later than the one that has told it.
            if by_leaders && error.kind == ErrorKind::SchemaChanged {
                continue;
            }
            let pauses = pauses.get_or_insert_with(|| Pauses::new(self.retry()));
            if !worth_retrying(&error) || !pauses.again() {
                return Err(error);
            }
            if error.kind == ErrorKind::SchemaChanged {
                if part > 0 {
                    return Err(error);
                }
                if Box::pin(self.renew(&line, batch)).await? {
                    continue;
                }
            }
            pauses.pause().await;
        }
    }

    #[inline]
    async fn try_part(&self, line: &Line, batch: &mut Batch, part: usize) -> Result<Bytes, CallError> {
        if !batch.is_of(line.epoch()) {
            Box::pin(self.renew(line, batch)).await?;
        }
        let effect = if batch.writes() { Effect::Lasting } else { Effect::None };
        let ask = Ask { effect, ..Ask::new(Kind::Batch) };
        let options = BatchOptions::default();
        line.call(ask, Kind::BatchAnswer, self.timeout(), |out| batch.build(part, &options, out)).await
    }

    /// One frame for each share, all of them under way at once. The first that fails is the error of all: they only
    /// read, so that all may be asked again.
    async fn try_divided(
        &self,
        division: Division,
        batch: &Batch,
        part: usize,
    ) -> Result<(Line, Result<Answers, CallError>), Error> {
        let Division { connections, shares } = division;
        let mut lines = Vec::with_capacity(connections.len());
        for connection in connections {
            lines.push(match connection {
                Some(connection) => Line::Remote(connection),
                None => self.line(None).await?,
            });
        }
        let line = lines[0].clone();
        let (first, _) = batch.range(part);
        let options = BatchOptions::default();
        let calls = lines.iter().zip(0u8..).map(|(line, share)| {
            let shares = &shares;
            let build = move |out| batch.build_share(part, &options, (shares, share), out);
            async move {
                let payload = line.call(Ask::new(Kind::Batch), Kind::BatchAnswer, self.timeout(), build).await?;
                // In this order, since there is no number behind the last.
                let mine = shares.iter().zip(0u16..).filter(|(owner, _)| **owner == share);
                Ok(Answer { first, numbers: Some(mine.map(|(_, number)| number).collect()), payload })
            }
        });
        let answers = try_join_all(calls).await.map(Answers::from_vec);
        Ok((line, answers))
    }

    /// Gets the newest definitions of the batch's tables and makes the batch one for them; whether that changed anything.
    pub(crate) async fn renew(&self, line: &Line, batch: &mut Batch) -> Result<bool, CallError> {
        let mut changed = false;
        for known in batch.known() {
            if Arc::ptr_eq(&known.table.current(), &known.opened) {
                known.table.refresh(line, &known.opened).await?;
            }
            changed |= !Arc::ptr_eq(&known.table.current(), &known.opened);
        }
        batch.renew().map_err(CallError::here)?;
        Ok(changed)
    }
}
