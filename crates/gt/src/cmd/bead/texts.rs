//! The longer texts of a bead, as `create` and `update` take them.

use clap::Args;

use crate::dashes;

#[derive(Debug, Args)]
pub(crate) struct TextArgs {
    /// More about it
    #[arg(long, short, allow_hyphen_values = true, value_parser = dashes::text)]
    description: Option<String>,
    /// How it is to be done
    #[arg(long, allow_hyphen_values = true, value_parser = dashes::text)]
    design: Option<String>,
    /// When it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = dashes::text)]
    acceptance: Option<String>,
    /// Anything else
    #[arg(long, allow_hyphen_values = true, value_parser = dashes::text)]
    notes: Option<String>,
    /// Its name in another system
    #[arg(long, value_name = "REF")]
    external_ref: Option<String>,
}

impl TextArgs {
    /// Those that were given, by the field they go into.
    pub(crate) fn given(self) -> impl Iterator<Item = (&'static str, String)> {
        let fields = [
            ("description", self.description),
            ("design", self.design),
            ("acceptance_criteria", self.acceptance),
            ("notes", self.notes),
            ("external_ref", self.external_ref),
        ];
        fields.into_iter().filter_map(|(field, words)| Some((field, words?)))
    }
}
