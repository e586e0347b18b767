//! Batches outside of transactions.
//!
//! Each operation stands for itself, so a batch may be sent again as long as nothing of it can have taken place. A request that was refused as a whole has not; one whose answer was
//! lost has perhaps, and then a batch that only reads is sent again and one that writes has an unknown outcome.

use crate::batch::BatchResult;
use crate::channel::{Ask, CallError, Effect, Line};
use crate::client::{Client, Pauses};
use crate::{Batch, Error, ErrorKind};
use bytes::Bytes;
use rauk_wire::{BatchOptions, Kind};
use smallvec::{SmallVec, smallvec};
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
                Some(BatchResult::new(std::mem::take(batch), smallvec![(0, payload)]))
            }
            // Refused as a whole, or not looked at: it is asked again.
            _ => None,
        }
    }

    async fn execute_waiting(&self, mut batch: Batch) -> Result<BatchResult, Error> {
        let mut payloads: SmallVec<[(usize, Bytes); 1]> = SmallVec::new();
        if batch.is_empty() {
            return BatchResult::new(batch, payloads);
        }
        self.check(&batch).await?;
        for part in 0..batch.parts() {
            let (first, _) = batch.range(part);
            match self.execute_part(&mut batch, part).await {
                Ok(payload) => payloads.push((first, payload)),
                Err(error) if part > 0 && batch.writes() => {
                    let why = format!("the first {first} operations took place, then: {error}");
                    return Err(Error::outcome_unknown(why));
                }
                Err(error) => return Err(error),
            }
        }
        BatchResult::new(batch, payloads)
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

    async fn execute_part(&self, batch: &mut Batch, part: usize) -> Result<Bytes, Error> {
        let mut pauses = None;
        loop {
            let line = self.line(None).await?;
            let error = match self.try_part(&line, batch, part).await {
                Ok(payload) => return Ok(payload),
                Err(error) => error.error,
            };
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
