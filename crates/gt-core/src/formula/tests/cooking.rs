//! Cooking: order, variables, conditions.

use super::*;

fn cook(recipe: &Recipe, lines: &str) -> Cooked {
    recipe.cook(Some(&Values::given(lines))).unwrap_or_else(|findings| panic!("{}", in_words(&findings)))
}

fn refused(recipe: &Recipe, lines: &str) -> String {
    in_words(&recipe.cook(Some(&Values::given(lines))).expect_err("it does not cook"))
}

fn ids(cooked: &Cooked) -> Vec<&str> {
    cooked.steps.iter().map(|step| step.id.as_str()).collect()
}

#[test]
fn steps_keep_their_order_but_for_what_they_need() {
    let step = |id: &str, needs: &str| format!("[[steps]]\nid = '{id}'\ntitle = 'T'\nneeds = [{needs}]\n");
    let recipe = alone(&[step("d", "'c'"), step("a", ""), step("c", "'a'"), step("b", "")].concat());
    assert_eq!(ids(&recipe.cook(None).unwrap()), ["a", "c", "d", "b"]);
}

#[test]
fn children_follow_their_parent_and_whoever_needs_it_waits_for_them_all() {
    let lines = "[[steps]]\nid = 'last'\ntitle = 'T'\nwaits_for = 'children-of(group)'\n\
                 [[steps]]\nid = 'group'\ntitle = 'T'\nneeds = ['first']\n\
                 [[steps.children]]\nid = 'g1'\ntitle = 'T'\nneeds = ['g2', 'group']\n\
                 [[steps.children]]\nid = 'g2'\ntitle = 'T'\n\
                 [[steps]]\nid = 'first'\ntitle = 'T'\n";
    let recipe = alone(lines);
    assert_told(&recipe, "");
    let cooked = recipe.cook(None).unwrap();
    assert_eq!(ids(&cooked), ["first", "group", "g2", "g1", "last"]);
    assert_eq!((cooked.steps[2].parent.as_deref(), cooked.steps[2].depth), (Some("group"), 1));
    assert_eq!(cooked.steps[4].needs, ["group"]);
}

#[test]
fn variables_are_filled_everywhere_and_only_once() {
    let recipe = alone(
        "description = 'For {{who}}'\n[vars]\nwho = 'you'\nlast = ''\n[[steps]]\nid = 'a'\ntitle = '{{ who }}-{{who}}'\n\
         description = '{{last}}|{{issue}}'\nnotes = '{{{who}}}'\nacceptance = ['{{who}}', 'b']\nlabels = ['{{who}}']",
    );
    assert_told(&recipe, "");
    let cooked = cook(&recipe, "who={{last}}\n");
    let step = &cooked.steps[0];
    assert_eq!((step.title.as_str(), cooked.description.as_str()), ("{{last}}-{{last}}", "For {{last}}"));
    assert_eq!((step.description.as_str(), step.notes.as_str()), ("|{{issue}}", "{{{last}}}"));
    assert_eq!((step.acceptance.join(","), step.labels.join(",")), ("{{last}},b".to_owned(), "{{last}}".to_owned()));
    assert_eq!(cooked.vars[0].value.as_deref(), Some("{{last}}"));
    let kept = recipe.cook(None).unwrap();
    assert_eq!((kept.steps[0].title.as_str(), kept.vars[0].value.as_deref()), ("{{ who }}-{{who}}", None));
}

#[test]
fn what_a_dispatch_knows_is_filled_in_and_what_was_given_wins() {
    let recipe = alone(
        "[vars.feature]\nrequired = true\n[vars.rig]\ndefault = 'none'\n[[steps]]\nid = 'a'\n\
         title = '{{issue}} {{feature}} {{rig}} {{base_branch}}'",
    );
    let values = Values::given("feature=mine").about("gt-1", "Title", "shop", "main");
    assert_eq!(recipe.cook(Some(&values)).unwrap().steps[0].title, "gt-1 mine shop main");
    // Nobody dispatches here, so nobody misses them.
    assert_eq!(cook(&recipe, "").steps[0].title, "{{issue}} {{feature}} none {{base_branch}}");
}

#[test]
fn missing_variables_are_named_all_at_once() {
    let recipe = with_a_step("[vars.a]\nrequired = true\n[vars.b]\nrequired = true\n[vars.c]\nrequired = true");
    assert_eq!(refused(&recipe, "b=x"), "the variables `a`, `c` of `x` are required | give it: `--var a=VALUE`");
    assert_eq!(refused(&recipe, "b=x\na=y\nc="), "the variable `c` of `x` is required | give it: `--var c=VALUE`");
    assert!(recipe.cook(None).is_ok(), "without values nothing is missing");
}

#[test]
fn values_keep_to_enum_pattern_and_type() {
    let recipe =
        with_a_step("[vars.e]\nenum = ['red', 'green']\n[vars.p]\npattern = '^v[0-9]+$'\n[vars.n]\ntype = 'int'");
    assert_eq!(cook(&recipe, "e=red\np=v12\nn=-3").vars[2].value.as_deref(), Some("-3"));
    assert_eq!(
        refused(&recipe, "e=gren\np=12\nn=x"),
        "the variable `e` is `gren`, which is none of `red`, `green`; did you mean `green`?\n\
         the variable `p` is `12`, which does not match `^v[0-9]+$`\n\
         the variable `n` is `x`, and must be a whole number"
    );
}

#[test]
fn a_value_that_no_variable_takes_is_told() {
    let cooked = cook(&with_a_step("[vars]\nbrowser = 'all'"), "browsr=one\nother=x");
    let told =
        "(warning) `x` has no variable `browsr` | did you mean `browser`?\n(warning) `x` has no variable `other`";
    assert_eq!(in_words(&cooked.findings), told);
}

#[test]
fn steps_whose_condition_does_not_hold_are_left_out_with_their_children() {
    let recipe = alone(
        "[vars]\nui = 'no'\nos = 'linux'\n\
         [[steps]]\nid = 'ui'\ntitle = 'T'\ncondition = '{{ui}}'\n[[steps.children]]\nid = 'look'\ntitle = 'T'\n\
         [[steps]]\nid = 'text'\ntitle = 'T'\ncondition = '!{{ui}}'\n\
         [[steps]]\nid = 'linux'\ntitle = 'T'\ncondition = '{{os}} == \"linux\"'\n\
         [[steps]]\nid = 'other'\ntitle = 'T'\ncondition = '{{os}} != linux'\n\
         [[steps]]\nid = 'end'\ntitle = 'T'\nneeds = ['ui', 'text']\n",
    );
    assert_told(&recipe, "");
    assert_eq!(ids(&cook(&recipe, "")), ["text", "linux", "end"]);
    assert_eq!(cook(&recipe, "").steps[2].needs, ["text"]);
    assert_eq!(ids(&cook(&recipe, "ui=yes\nos=mac")), ["ui", "look", "other", "end"]);
    assert_eq!(ids(&recipe.cook(None).unwrap()).len(), 6, "without values all are shown");
    let only = alone("[vars]\nui = ''\n[[steps]]\nid = 'ui'\ntitle = 'T'\ncondition = '{{ui}}'");
    assert_eq!(refused(&only, ""), "with these values no step of `x` is left");
}

#[test]
fn only_workflows_are_for_agents() {
    let recipe = with_a_step("type = 'expansion'");
    let objections = recipe.cook(None).unwrap().objections();
    assert_eq!(objections, ["`x` is of the type `expansion`; only workflows are given to agents"]);
    let template = alone("type = 'expansion'\n[[template]]\nid = '{target}.draft'\ntitle = 'Draft {target.title}'");
    assert_told(&template, "");
    assert_eq!(ids(&template.cook(None).unwrap()), ["{target}.draft"]);
}
