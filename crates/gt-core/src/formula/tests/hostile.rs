//! Files that want to take memory, time or the terminal: refused within bounds, in words.

use super::*;

/// Taken or refused, and if refused, then in a few words that drive no terminal.
#[track_caller]
fn assert_bounded(text: &str) -> Recipe {
    let recipe = Shelf::default().with("x", text).recipe("x");
    assert!(recipe.findings.len() <= FINDINGS_MAX * 4, "{} findings", recipe.findings.len());
    for finding in &recipe.findings {
        let told = format!("{finding}{}", finding.hint.as_deref().unwrap_or_default());
        assert!(told.len() < 2_000 && !told.contains(text::misleads), "{told:?}");
    }
    recipe
}

fn many(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect::<Vec<_>>().concat()
}

fn head() -> String {
    "formula = 'x'\nversion = 1\n".to_owned()
}

#[test]
fn a_file_is_not_larger_than_a_mebibyte() {
    let recipe = assert_bounded(&(head() + &" ".repeat(FILE_BYTES_MAX)));
    assert_eq!(in_words(&recipe.findings), "x.toml: the file has 1048602 bytes; at most 1048576 are read");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let recipe = assert_bounded("formula = 'x'\nversion = = 1\n");
    assert!(in_words(&recipe.findings).starts_with("x.toml:2: this is no TOML: "), "{}", in_words(&recipe.findings));
    assert!(recipe.cook(None).is_err());
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for n in [100, 10_000, 200_000] {
        assert_bounded(&(head() + "a = " + &"[".repeat(n)));
        assert_bounded(&(head() + "a = " + &"[".repeat(n) + &"]".repeat(n)));
        assert_bounded(&(head() + "a = " + &"{a=".repeat(n)));
        assert_bounded(&(head() + &"a.".repeat(n) + "a = 1"));
        assert_bounded(&(head() + "[" + &"a.".repeat(n) + "a]"));
        assert_bounded(&(head() + "[[steps]]\nchildren = " + &"[{children=".repeat(n)));
    }
    let nested = (0..20).fold("[]".to_owned(), |inside, n| format!("[{{id='s{n}',title='T',children={inside}}}]"));
    let recipe = assert_bounded(&(head() + "steps = " + &nested));
    let told = in_words(&recipe.findings);
    assert!(told.contains("steps lie more than 8 deep in each other"), "{told}");
}

#[test]
fn steps_variables_and_findings_are_counted() {
    let steps = many(STEPS_MAX + 1, |n| format!("[[steps]]\nid='s{n}'\ntitle='T'\n"));
    let recipe = assert_bounded(&(head() + &steps));
    assert!(in_words(&recipe.findings).contains("there are more than 256 steps"));
    let vars = many(VARS_MAX + 1, |n| format!("v{n} = ''\n"));
    let recipe = assert_bounded(&(head() + "steps = [{id='a',title='A'}]\n[vars]\n" + &vars));
    assert!(in_words(&recipe.findings).contains("there are 257 variables; at most 256 are read"));
    let unknown = many(50_000, |n| format!("odd{n} = 1\n"));
    let recipe = assert_bounded(&(head() + &unknown));
    assert!(in_words(&recipe.findings).contains("there are 49950 more findings, which are not shown"));
    let needs = "'nosuch',".repeat(100_000);
    assert_bounded(&(head() + "steps = [{id='a',title='A',needs=[" + &needs + "]}]"));
}

#[test]
fn long_words_are_shortened() {
    let long = "x".repeat(500_000);
    for text in [format!("{long} = 1"), format!("type = '{long}'"), format!("extends = ['{long}']"), format!("'{long}")]
    {
        assert_bounded(&(head() + &text));
    }
    assert_bounded(&(head() + &format!("[[steps]]\nid = '{long}'\nneeds = ['{long}y']\nwaits_for = '{long}'")));
    let recipe = assert_bounded(&(head() + &format!("[vars.n]\nenum = ['{long}']\ndefault = 'a'")));
    assert!(recipe.cook(None).is_err());
}

#[test]
fn texts_do_not_drive_a_terminal_or_end_an_argument() {
    for text in ["\\u0000", "\\u001b[31m", "\\u0007"] {
        let recipe = assert_bounded(&(head() + &format!("[[steps]]\nid = 'a'\ntitle = \"{text}\"")));
        assert!(in_words(&recipe.findings).contains("holds the control character"));
    }
    assert_bounded(
        &(head() + "\"\\u001b[31m\" = 1\n[[steps]]\nid = \"\\u202ex\"\ntitle = 'T'\nneeds = [\"\\u202ey\"]"),
    );
}

#[test]
fn patterns_are_short_small_and_take_no_time() {
    let with = |pattern: &str| with_a_step(&format!("[vars.n]\npattern = '{pattern}'"));
    let told = |pattern: &str| in_words(&with(pattern).findings);
    assert!(told(&"a".repeat(501)).ends_with("cannot be used: it has more than 500 characters"));
    assert!(told("((a{1000}){1000}){1000}").ends_with("cannot be used: it takes too much memory"));
    assert!(told(&"(".repeat(500)).contains("cannot be used: "));
    let slow_elsewhere = with("^(a+)+$");
    let value = format!("n={}b", "a".repeat(10_000));
    assert!(slow_elsewhere.cook(Some(&Values::given(&value))).is_err());
}

#[test]
fn filling_in_is_bounded() {
    let many = "{{n}}".repeat(10_000);
    let recipe = alone(&format!("[vars]\nn = ''\n[[steps]]\nid = 'a'\ntitle = 'T'\nnotes = '{many}'"));
    assert!(recipe.cook(Some(&Values::given("n=x"))).is_ok());
    let value = format!("n={}", "x".repeat(10_000));
    let told = in_words(&recipe.cook(Some(&Values::given(&value))).expect_err("too much"));
    assert!(told.starts_with("the texts of its steps have more than 65536 bytes together"), "{told}");
    let told =
        in_words(&recipe.cook(Some(&Values::given(&format!("n={}", "x".repeat(20_000))))).expect_err("too long"));
    assert!(told.starts_with("the variable `n` has 20000 bytes; at most 16384 fit"), "{told}");
    assert_bounded(&(head() + &format!("[[steps]]\nid = 'a'\ntitle = '{}'", "{".repeat(300_000))));
    assert_bounded(&(head() + &format!("[[steps]]\nid = 'a'\ntitle = '{}'", "{{ ".repeat(100_000))));
    assert_bounded(&(head() + &format!("[[steps]]\nid = 'a'\ntitle = '{{{{{}'", " ".repeat(300_000))));
}
