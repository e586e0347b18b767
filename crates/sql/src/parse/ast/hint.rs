//! Optimizer hints: `/*+ NAME(arguments) … */` behind SELECT.

/// One hint. What it means, and whether it is known, is for binding to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// In upper case.
    pub name: String,
    /// `@block` before the arguments.
    pub block: Option<String>,
    pub arguments: Vec<HintArgument>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintArgument {
    pub name: String,
    /// `table@block`.
    pub block: Option<String>,
    /// Of SET_VAR: `name = value`, as it was written.
    pub value: Option<String>,
    /// It follows another one without a comma: an index behind its table.
    pub joined: bool,
}

/// The hints of a query block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub list: Vec<Hint>,
    /// Where a mistake is: the text from there, and its line. Hints before it count.
    pub wrong: Option<(String, usize)>,
}
