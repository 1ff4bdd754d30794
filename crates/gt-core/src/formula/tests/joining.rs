//! What a formula extends.

use super::*;

fn formula(name: &str, extends: &str, rest: &str) -> String {
    format!("formula = '{name}'\nversion = 1\nextends = [{extends}]\n{rest}")
}

fn step(id: &str, title: &str, more: &str) -> String {
    format!("[[steps]]\nid = '{id}'\ntitle = '{title}'\n{more}\n")
}

fn titles(recipe: &Recipe) -> Vec<String> {
    let cooked = recipe.cook(None).unwrap_or_else(|findings| panic!("{}", in_words(&findings)));
    cooked.steps.into_iter().map(|step| step.title).collect()
}

#[test]
fn what_is_extended_comes_first_and_what_extends_it_wins() {
    let base =
        formula("base", "", &format!("[vars]\na = '1'\nb = '1'\n{}{}", step("one", "One", ""), step("two", "Two", "")));
    let own = format!(
        "[vars]\nb = '2'\n{}{}",
        step("two", "My two", ""),
        step("three", "Three {{a}} {{b}}", "needs = ['one']")
    );
    let shelf = Shelf::default().with("base", &base).with("x", &formula("x", "'base'", &own));
    let recipe = shelf.recipe("x");
    assert_told(&recipe, "");
    assert_eq!(titles(&recipe), ["One", "My two", "Three {{a}} {{b}}"]);
    let cooked = recipe.cook(Some(&Values::default())).expect("it cooks");
    assert_eq!(cooked.steps[2].title, "Three 1 2");
    assert_eq!(cooked.steps[2].needs, ["one"]);
}

#[test]
fn a_formula_that_is_extended_twice_counts_once() {
    let shelf = Shelf::default()
        .with("root", &formula("root", "", &step("r", "Root", "")))
        .with("left", &formula("left", "'root'", &step("l", "Left", "")))
        .with("right", &formula("right", "'root'", &step("r", "Other root", "")))
        .with("x", &formula("x", "'left', 'right'", &step("x", "X", "")));
    assert_eq!(titles(&shelf.recipe("x")), ["Other root", "Left", "X"]);
}

#[test]
fn a_nested_step_can_be_replaced() {
    let nested = format!("{}[[steps.children]]\nid = 'k'\ntitle = 'K'\n", step("p", "P", ""));
    let shelf = Shelf::default()
        .with("base", &formula("base", "", &nested))
        .with("x", &formula("x", "'base'", &step("k", "My K", "")));
    assert_eq!(titles(&shelf.recipe("x")), ["P", "My K"]);
}

#[test]
fn a_child_that_takes_the_id_of_another_step_is_told() {
    let nested = format!("{}[[steps.children]]\nid = 'a'\ntitle = 'K'\n", step("p", "P", ""));
    let shelf = Shelf::default()
        .with("base", &formula("base", "", &step("a", "A", "")))
        .with("x", &formula("x", "'base'", &nested));
    assert_told(&shelf.recipe("x"), "x.toml:8: the id `a` is used twice, as in line 4");
}

#[test]
fn what_is_extended_is_there() {
    let shelf = Shelf::default()
        .with("release", &formula("release", "", &step("a", "A", "")))
        .with("x", &formula("x", "'relase', '../y'", &step("x", "X", "")));
    let wanted = "x.toml:3: `../y` is no name of a formula: use letters, digits, `-`, `_` and `.`, and no dot at the \
                  beginning\n\
                  x.toml:3: there is no formula `relase` to extend | did you mean `release`?";
    assert_told(&shelf.recipe("x"), wanted);
}

#[test]
fn formulas_do_not_extend_each_other_in_a_circle() {
    let shelf = Shelf::default()
        .with("x", &formula("x", "'y'", &step("x", "X", "")))
        .with("y", &formula("y", "'z'", &step("y", "Y", "")))
        .with("z", &formula("z", "'x'", &step("z", "Z", "")));
    assert_told(&shelf.recipe("x"), "z.toml:3: formulas extend each other in a circle: x → y → z → x");
    let own = Shelf::default().with("x", &formula("x", "'x'", &step("x", "X", "")));
    assert_told(&own.recipe("x"), "x.toml:3: formulas extend each other in a circle: x → x");
}

#[test]
fn what_is_wrong_with_an_extended_file_is_told_with_its_name() {
    let shelf = Shelf::default()
        .with("base", &formula("base", "", "[[steps]]\nid = 'a'\n"))
        .with("x", &formula("x", "'base'", &step("x", "X", "")));
    assert_told(&shelf.recipe("x"), "base.toml:4: step `a` has no title");
}

#[test]
fn formulas_extend_each_other_only_so_deep_and_so_many() {
    let mut deep = Shelf::default();
    for n in 0..=EXTENDS_DEPTH_MAX {
        deep = deep.with(
            &format!("f{n}"),
            &formula(&format!("f{n}"), &format!("'f{}'", n + 1), &step(&format!("s{n}"), "S", "")),
        );
    }
    let wanted =
        format!("f{}.toml:3: formulas extend each other more than {EXTENDS_DEPTH_MAX} deep", EXTENDS_DEPTH_MAX - 1);
    assert_told(&deep.recipe("f0"), &wanted);
    let names: Vec<String> = (0..FILES_MAX).map(|n| format!("'f{n}'")).collect();
    let mut wide = Shelf::default().with("x", &formula("x", &names.join(","), &step("x", "X", "")));
    for n in 0..FILES_MAX {
        wide = wide.with(&format!("f{n}"), &formula(&format!("f{n}"), "", &step(&format!("s{n}"), "S", "")));
    }
    assert_told(&wide.recipe("x"), &format!("x.toml:3: more than {FILES_MAX} formulas would be read for one"));
}

#[test]
fn the_hash_follows_every_file() {
    let shelf = |title: &str| {
        Shelf::default()
            .with("base", &formula("base", "", &step("a", title, "")))
            .with("x", &formula("x", "'base'", &step("x", "X", "")))
            .recipe("x")
            .hash
    };
    assert_eq!(shelf("A"), shelf("A"));
    assert_ne!(shelf("A"), shelf("B"));
    assert_eq!(shelf("A").len(), 12);
}
