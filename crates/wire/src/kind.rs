//! Every signal has a number of its own; numbers are never given twice.

/// What a frame's payload is. Requests are answered by the kind named, or by [`Kind::Failed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    // Handshake, in this order; see [`crate::hello`].
    Hello = 1,
    Challenge = 2,
    Proof = 3,
    Welcome = 4,
    Refused = 5,
    /// Answered by `Pong` with the same payload.
    Ping = 6,
    Pong = 7,
    /// The sender will close; payload is a [`crate::Failure`]. Requests without an answer have an unknown outcome.
    Goodbye = 8,
    // Handshake with an account; see [`crate::login`].
    Login = 10,
    Salts = 11,
    Claim = 12,
    Known = 13,
    Password = 14,
    Denied = 15,

    /// → `Definition`
    OpenTable = 16,
    Definition = 17,
    /// → `Definition`
    CreateTable = 18,
    /// → `Done`
    DropTable = 19,
    /// → `Done`
    CreateDatabase = 20,
    Done = 21,
    /// Where partitions are led; see [`crate::placement`]. → `Placement`
    AskPlacement = 22,
    Placement = 23,

    /// → `BatchAnswer`
    Batch = 32,
    BatchAnswer = 33,
    /// → `ScanPage`
    Scan = 34,
    /// → `ScanPage`
    ScanNext = 35,
    /// → `Done`
    ScanClose = 36,
    ScanPage = 37,
    /// Rolls the transaction of the header back. → `Done`
    Rollback = 40,
    /// Interrupts the request whose number is the payload (u64). Not answered itself.
    Cancel = 41,

    // Between nodes of a cluster. What they carry is not read here.
    /// A signal of the node's, as it encodes it. Not answered; may be lost.
    Member = 48,
    /// A request of the manage group's consensus. → `RaftAnswer`
    Raft = 49,
    RaftAnswer = 50,

    /// A request failed as a whole; payload is a [`crate::Failure`].
    Failed = 63,
}

impl Kind {
    pub const ALL: &[Kind] = &[
        Kind::Hello,
        Kind::Challenge,
        Kind::Proof,
        Kind::Welcome,
        Kind::Refused,
        Kind::Ping,
        Kind::Pong,
        Kind::Goodbye,
        Kind::Login,
        Kind::Salts,
        Kind::Claim,
        Kind::Known,
        Kind::Password,
        Kind::Denied,
        Kind::OpenTable,
        Kind::Definition,
        Kind::CreateTable,
        Kind::DropTable,
        Kind::CreateDatabase,
        Kind::Done,
        Kind::AskPlacement,
        Kind::Placement,
        Kind::Batch,
        Kind::BatchAnswer,
        Kind::Scan,
        Kind::ScanNext,
        Kind::ScanClose,
        Kind::ScanPage,
        Kind::Rollback,
        Kind::Cancel,
        Kind::Member,
        Kind::Raft,
        Kind::RaftAnswer,
        Kind::Failed,
    ];

    #[inline]
    pub fn from_number(number: u16) -> Option<Kind> {
        BY_NUMBER.get(usize::from(number)).copied().flatten()
    }

    /// Signals whose payload is opaque to the protocol.
    pub const fn is_opaque(self) -> bool {
        matches!(self, Kind::Ping | Kind::Pong | Kind::Member | Kind::Raft | Kind::RaftAnswer)
    }

    /// Signals that both sides understand before they have agreed on a version.
    pub const fn is_handshake(self) -> bool {
        (self as u16) < Kind::Ping as u16 || Kind::Login as u16 <= self as u16 && self as u16 <= Kind::Denied as u16
    }
}

/// Kinds by their numbers.
static BY_NUMBER: [Option<Kind>; 64] = {
    let mut kinds = [None; 64];
    let mut i = 0;
    while i < Kind::ALL.len() {
        kinds[Kind::ALL[i] as usize] = Some(Kind::ALL[i]);
        i += 1;
    }
    kinds
};
