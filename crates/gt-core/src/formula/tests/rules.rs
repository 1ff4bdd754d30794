//! Every rule, with a file that breaks it and the words in which that is told.

use super::*;

#[test]
fn a_small_formula_is_fine() {
    let recipe = with_a_step("type = 'workflow'\ndescription = 'Small'\nphase = 'liquid'\nsquash = true");
    assert_told(&recipe, "");
    assert_eq!((recipe.version, recipe.kind, recipe.steps.len()), (1, Kind::Workflow, 1));
}

#[test]
fn a_formula_has_a_name() {
    let text = "version = 1\n[[steps]]\nid = 'a'\ntitle = 'A'\n";
    let recipe = Shelf::default().with("x", text).recipe("x");
    assert_told(&recipe, "x.toml: its name is missing | begin the file with `formula = \"x\"`");
}

#[test]
fn a_formula_that_calls_itself_otherwise_is_told_so() {
    let text = "formula = 'y'\nversion = 1\n[[steps]]\nid = 'a'\ntitle = 'A'\n";
    let recipe = Shelf::default().with("x", text).recipe("x");
    assert_told(&recipe, "(warning) x.toml:1: it calls itself `y`, but is found by the name of its file, `x`");
}

#[test]
fn a_version_is_there_and_at_least_one() {
    let steps = "[[steps]]\nid = 'a'\ntitle = 'A'\n";
    for (version, wanted) in [
        ("", "x.toml: its version is missing | write `version = 1`"),
        ("version = 0\n", "x.toml:2: its version is 0; versions begin at 1"),
        ("version = -3\n", "x.toml:2: its version is -3; versions begin at 1"),
        ("version = '1'\n", "x.toml:2: `version` of the formula must be a whole number"),
    ] {
        let text = format!("formula = 'x'\n{version}{steps}");
        assert_told(&Shelf::default().with("x", &text).recipe("x"), wanted);
    }
}

#[test]
fn a_type_is_one_of_four() {
    let wanted = "x.toml:3: there is no type `workflw`; it is one of workflow, expansion, aspect, convoy \
                  | did you mean `workflow`?";
    assert_told(&with_a_step("type = 'workflw'"), wanted);
    for kind in Kind::ALL {
        let recipe = with_a_step(&format!("type = '{}'", kind.as_str()));
        assert_eq!((recipe.kind, recipe.errors().count()), (kind, 0));
    }
}

#[test]
fn a_workflow_has_a_step_and_other_types_need_none() {
    let wanted = "x.toml: a workflow needs at least one step | add one: `[[steps]]` with an `id` and a `title`";
    assert_told(&alone(""), wanted);
    assert_told(&alone("steps = []"), wanted);
    for kind in ["expansion", "aspect", "convoy"] {
        assert_told(&alone(&format!("type = '{kind}'")), "");
    }
}

#[test]
fn a_variable_is_not_both_required_and_given_a_default() {
    let recipe = with_a_step("[vars.n]\nrequired = true\ndefault = 'x'");
    let hint = "leave one of them out: with a default nobody has to give it";
    assert_told(&recipe, &format!("x.toml:4: `n` is required and has a default | {hint}"));
    assert_told(&with_a_step("[vars]\nn = 'x'\nm = 3\nb = true\nf = 1.5"), "");
}

#[test]
fn a_variable_has_a_name_that_a_placeholder_can_say() {
    let wanted = "x.toml:4: `a b` cannot be a variable: a name is made of letters, digits, `_` and `-`";
    assert_told(&with_a_step("[vars]\n'a b' = 'x'"), wanted);
    let wanted = "x.toml:4: the variable `n` must be a default in quotes, or a table";
    assert_told(&with_a_step("[vars]\nn = [1]"), wanted);
}

#[test]
fn a_default_keeps_to_enum_pattern_and_type() {
    for (lines, wanted) in [
        (
            "enum = ['red', 'green']\ndefault = 'gren'",
            "the default of `n` is `gren`, which is none of `red`, `green`; did you mean `green`?",
        ),
        ("pattern = '^[a-z]+$'\ndefault = 'A1'", "the default of `n` is `A1`, which does not match `^[a-z]+$`"),
        ("type = 'int'\ndefault = 'many'", "the default of `n` is `many`, and must be a whole number"),
        ("type = 'bool'\ndefault = 'maybe'", "the default of `n` is `maybe`, and must be `true` or `false`"),
        ("type = 'number'\ndefault = 'few'", "the default of `n` is `few`, and must be a number"),
        ("pattern = '('", "the pattern of `n` cannot be used: unclosed group"),
        ("enum = []", "an empty `enum` allows no value"),
    ] {
        let recipe = with_a_step(&format!("[vars.n]\n{lines}"));
        let told = in_words(&recipe.findings);
        assert!(told.starts_with("x.toml:") && told.ends_with(wanted), "{told}");
        assert!(recipe.cook(None).is_err());
    }
    assert_told(&with_a_step("[vars.n]\nenum = ['a', 'b']\npattern = 'a|b'\ntype = 'string'\ndefault = 'b'"), "");
    let odd = "(warning) x.toml:3: the variable `n` has the type `colour`; its value is taken as text";
    assert_told(&with_a_step("[vars.n]\ntype = 'colour'"), odd);
    let nested = "(warning) x.toml:4: the default of `n` holds a placeholder, which is not filled in";
    assert_told(&with_a_step("[vars]\nn = 'for {{issue}}'"), nested);
}

#[test]
fn a_step_has_an_id() {
    let wanted = "x.toml:3: this step has no id | every step needs an `id` of its own";
    assert_told(&alone("[[steps]]\ntitle = 'A'"), wanted);
    assert_told(&alone("[[steps]]\nid = ' '\ntitle = 'A'"), &wanted.replace(":3:", ":4:"));
    let spaced = "x.toml:4: the id of step `a b` holds spaces or control characters";
    assert_told(&alone("[[steps]]\nid = 'a b'\ntitle = 'A'"), spaced);
}

#[test]
fn an_id_is_used_once_children_included() {
    let lines = "[[steps]]\nid = 'a'\ntitle = 'A'\n[[steps]]\nid = 'b'\ntitle = 'B'\n\
                 [[steps.children]]\nid = 'a'\ntitle = 'A again'\n";
    assert_told(&alone(lines), "x.toml:9: the id `a` is used twice, as in line 3");
}

#[test]
fn a_step_has_a_title_unless_it_is_expanded() {
    assert_told(&alone("[[steps]]\nid = 'a'"), "x.toml:3: step `a` has no title");
    let shelf = Shelf::default()
        .with("x", "formula = 'x'\nversion = 1\n[[steps]]\nid = 'a'\nexpand = 'y'")
        .with("y", "formula = 'y'\nversion = 1\ntype = 'expansion'");
    let wanted = "(unsupported) x.toml:5: step `a` is to be expanded, and expansions are not supported";
    assert_told(&shelf.recipe("x"), wanted);
}

#[test]
fn a_priority_is_zero_to_four() {
    for (priority, is_fine) in [(-1, false), (0, true), (4, true), (5, false)] {
        let recipe = alone(&format!("[[steps]]\nid = 'a'\ntitle = 'A'\npriority = {priority}"));
        let wanted = format!("x.toml:6: step `a` has the priority {priority}; it is 0 (most urgent) to 4");
        assert_told(&recipe, if is_fine { "" } else { &wanted });
    }
}

#[test]
fn needs_and_depends_on_name_steps_that_are_there() {
    for key in ["needs", "depends_on"] {
        let recipe = alone(&format!(
            "[[steps]]\nid = 'build'\ntitle = 'A'\n[[steps]]\nid = 'b'\ntitle = 'B'\n{key} = [\n  'biuld',\n]"
        ));
        let wanted = "x.toml:10: step `b` needs `biuld`, and there is no such step | did you mean `build`?";
        assert_told(&recipe, wanted);
    }
    assert_told(
        &alone("[[steps]]\nid = 'a'\ntitle = 'A'\nneeds = 'b'"),
        "x.toml:6: `needs` of step `a` must be a list of texts",
    );
}

#[test]
fn waits_for_is_one_of_three_and_names_a_step_that_is_there() {
    let steps = |word: &str| {
        alone(&format!("[[steps]]\nid = 'a'\ntitle = 'A'\n[[steps]]\nid = 'b'\ntitle = 'B'\nwaits_for = '{word}'"))
    };
    for word in ["all-children", "any-children", "children-of(a)"] {
        assert_told(&steps(word), "");
    }
    let wanted = "x.toml:9: step `b` waits for `all-childen`; it can be `all-children`, `any-children` or \
                  `children-of(ID)` | did you mean `all-children` or `any-children`?";
    assert_told(&steps("all-childen"), wanted);
    assert_told(&steps("children-of(c)"), "x.toml:9: step `b` needs `c`, and there is no such step");
    assert!(in_words(&steps("children-of()").findings).contains("it can be"));
}

#[test]
fn on_complete_keeps_its_rules_and_is_not_carried_out() {
    let on = |fields: &str| alone(&format!("[[steps]]\nid = 'a'\ntitle = 'A'\non_complete = {{ {fields} }}"));
    let unsupported = "(unsupported) x.toml:6: step `a` makes more work when it is complete, which is not supported";
    for (fields, wrong) in [
        ("for_each = 'output.x'", "has `for_each` without `bond`"),
        ("bond = 'x'", "has `bond` without `for_each`"),
        ("", "has neither `for_each` nor `bond`"),
        ("for_each = 'files', bond = 'x'", "goes through `files`, and `for_each` begins with `output.`"),
        ("for_each = 'output.x', bond = 'x', parallel = true, sequential = true", "is both parallel and sequential"),
    ] {
        assert_told(&on(fields), &format!("x.toml:6: `on_complete` of step `a` {wrong}\n{unsupported}"));
    }
    assert_told(&on("for_each = 'output.x', bond = 'x', parallel = true"), unsupported);
    let told = in_words(&on("for_each = 'output.x', bond = 'nosuch'").findings);
    assert!(told.starts_with("x.toml:6: there is no formula `nosuch`"), "{told}");
}

#[test]
fn a_loop_is_judged_and_not_carried_out() {
    let with = |fields: &str| alone(&format!("[[steps]]\nid = 'a'\ntitle = 'A'\nloop = {{ {fields} }}"));
    let unsupported = "(unsupported) x.toml:6: step `a` is a loop, and loops are not supported";
    assert_told(&with("count = 3, body = [{ id = 'b', title = 'B' }]"), unsupported);
    for (fields, wrong) in [
        ("body = [{ id = 'b' }]", "needs one of `count`, `until` and `range`"),
        ("count = 3, range = '1..2', body = [{ id = 'b' }]", "needs one of `count`, `until` and `range`"),
        ("until = 'done', body = [{ id = 'b' }]", "has `until` and no `max`, so it may never end"),
        ("count = 3", "has no `body`"),
        ("count = 3, body = []", "has no `body`"),
    ] {
        assert_told(&with(fields), &format!("x.toml:6: the loop of step `a` {wrong}\n{unsupported}"));
    }
}

#[test]
fn what_would_change_the_work_and_is_not_carried_out_is_told_never_left_out() {
    for (line, wanted) in [
        ("[compose]\naspects = []", "`compose` is not supported in a workflow"),
        ("advice = []", "`advice` is not supported in a workflow"),
        ("pointcuts = []", "`pointcuts` is not supported in a workflow"),
        ("legs = []", "`legs` is not supported in a workflow"),
        ("synthesis = {}", "`synthesis` is not supported in a workflow"),
        ("review_only = true", "`review_only` is not supported: a worker may change and commit"),
        ("template = []", "a template is a part of expansions, which are not carried out here"),
    ] {
        let recipe = with_a_step(line);
        assert_told(&recipe, &format!("(unsupported) x.toml:3: {wanted}"));
        assert_eq!(recipe.cook(None).map(|cooked| cooked.objections().len()), Ok(1));
    }
    for (line, wanted) in [
        ("gate = { type = 'human' }", "step `a` has a gate, and gates are not supported"),
        (
            "condition = '{{issue}} > 3'",
            "step `a` has the condition `{{issue}} > 3`, which is not supported | conditions are `{{x}}`, `!{{x}}`, \
             `{{x}} == word` and `{{x}} != word`",
        ),
    ] {
        let recipe = alone(&format!("[[steps]]\nid = 'a'\ntitle = 'A'\n{line}"));
        let told = in_words(&recipe.findings);
        assert!(told.starts_with("(unsupported) x.toml:") && told.ends_with(wanted), "{told}");
    }
}

#[test]
fn what_changes_nothing_is_a_warning() {
    for (line, wanted) in [
        ("pour = true", "x.toml:3: steps are not made into beads; the agent reads them in its assignment"),
        ("agent = 'codex'", "x.toml:3: the agent is not taken from here; name it with `gt sling --agent NAME`"),
        (
            "descripton = 'x'",
            "x.toml:3: `descripton` means nothing in the formula, and is left out | did you mean `description`?",
        ),
        ("[vars.n]\nhelp = 'x'", "x.toml:4: `help` means nothing in the variable `n`, and is left out"),
    ] {
        assert_told(&with_a_step(line), &format!("(warning) {wanted}"));
    }
    let step = "[[steps]]\nid = 'a'\ntitle = 'A'\nneed = ['b']\nassignee = 'mayor'";
    let wanted = "(warning) x.toml:6: `need` means nothing in step `a`, and is left out | did you mean `needs`?\n\
                  (warning) x.toml:7: step `a` is meant for mayor; one worker does all steps of a bead";
    assert_told(&alone(step), wanted);
}

#[test]
fn bond_points_and_hooks_have_their_fields() {
    let lines = "type = 'aspect'\n[[compose.bond_points]]\nafter_step = 'nosuch'\nbefore_step = 'a'\n\
                 [[compose.hooks]]\ntrigger = 'x'\n[[steps]]\nid = 'a'\ntitle = 'A'";
    let wanted = "x.toml:4: an entry of `compose.bond_points` has no `id`\n\
                  x.toml:4: a bond point lies after a step or before one, not both\n\
                  x.toml:5: `compose` names `nosuch`, and there is no such step\n\
                  x.toml:7: an entry of `compose.hooks` has no `attach`";
    assert_told(&alone(lines), wanted);
}

#[test]
fn a_circle_of_needs_is_named() {
    let steps = |needs: &[(&str, &str)]| {
        let step = |(id, need): &(&str, &str)| format!("[[steps]]\nid = '{id}'\ntitle = 'T'\nneeds = [{need}]\n");
        alone(&needs.iter().map(step).collect::<String>())
    };
    assert_told(&steps(&[("a", "'a'")]), "x.toml:3: step `a` needs itself");
    let three = steps(&[("free", ""), ("a", "'c'"), ("b", "'a'"), ("c", "'b', 'free'"), ("d", "'a'")]);
    assert_told(&three, "x.toml:7: steps need each other in a circle: a → c → b → a");
    let of_its_child = "[[steps]]\nid = 'p'\ntitle = 'P'\nneeds = ['k']\n[[steps.children]]\nid = 'k'\ntitle = 'K'";
    assert_told(&alone(of_its_child), "x.toml:3: steps need each other in a circle: p → k → p");
}

#[test]
fn unknown_placeholders_are_named_with_their_step() {
    let recipe = alone(
        "[vars]\nbrowser = 'all'\n[[steps]]\nid = 'a'\ntitle = 'In {{ browsr }}'\ndescription = '{{issue}} {{nosuch}} ${{ a.b }} {{{{'",
    );
    let wanted = "x.toml:5: step `a` uses `{{browsr}}`, and there is no such variable | did you mean `browser`?\n\
                  x.toml:5: step `a` uses `{{nosuch}}`, and there is no such variable | declare it: `[vars.nosuch]`";
    assert_told(&recipe, wanted);
}

#[test]
fn everything_wrong_with_a_file_is_told_at_once() {
    let recipe = alone("type = 'x'\n[[steps]]\n[[steps]]\nid = 'b'\nneeds = ['c']\npriority = 9");
    assert_eq!(recipe.errors().count(), 6, "{}", in_words(&recipe.findings));
}

#[test]
fn a_name_is_a_plain_word() {
    for name in ["mol-polecat-work", "a.b", "A_1", "x"] {
        assert_eq!(check_name(name), Ok(()));
    }
    for name in ["", "../x", "a/b", ".hidden", "..", "a b", "a\n", "\u{202e}x", "é", &"x".repeat(101), "a\\b", "~"] {
        let why = check_name(name).expect_err(name);
        assert!(!why.contains(text::misleads) && why.len() < 300, "{why}");
    }
}
