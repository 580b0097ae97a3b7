package score

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"
)

// A Template is text with holes. Its functions are a closed set. There is no loop, no variable
// besides those that are declared, and nothing is ever left blank in silence: what the device
// does not know is a fault.
type Template struct {
	// Text with holes, in the syntax of Go templates: {{ .vars.url }} is a variable of vars, {{ .facts.hostname }} a fact of the device, {{ secret "psk" }} a secret of the device, and {{ if eq .facts.arch "aarch64" }}…{{ else }}…{{ end }} a choice. Functions are upper, lower, trim, default, join, quoteJSON, quoteShell, quoteSystemd, eq, ne, and, or, not. What is missing is an error.
	Text string `json:"text" jsonschema:"example=url = {{ .vars.url }}"`
	// Vars are the variables that the text may use, with their values.
	Vars map[string]string `json:"vars,omitempty"`
}

// Bounds of a template. What a template makes of itself is bounded too: see Render.
const (
	maxTemplate = 64 << 10
	maxVars     = 256
)

var (
	varRE     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	functions = slices.Sorted(maps.Keys(templateFuncs))
)

// parsed is a template that was understood, and what it needs.
type parsed struct {
	root    *parse.ListNode
	secrets []string
	facts   []string
}

// parse reads the text, and reports everything in it that is not part of the language, with
// its line.
func (t Template) parse(problem func(line int, text string)) parsed {
	known := map[string]any{}
	for name := range templateFuncs {
		known[name] = true
	}
	tree := parse.New("text")
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(t.Text, "", "", trees, known); err != nil {
		line, text := ofParser(err)
		problem(line, text)
		return parsed{}
	}
	w := walker{t: t, problem: problem}
	if len(trees) > 1 || len(trees) == 1 && trees["text"] == nil {
		problem(1, "a template defines no other templates")
	}
	if tree.Root == nil {
		return parsed{root: &parse.ListNode{}}
	}
	w.list(tree.Root)
	slices.Sort(w.secrets)
	slices.Sort(w.facts)
	return parsed{tree.Root, slices.Compact(w.secrets), slices.Compact(w.facts)}
}

var parserRE = regexp.MustCompile(`(?s)^template: text:(\d+):(?:\d+:)? ?(.*)$`)

// ofParser takes the words of the parser apart.
func ofParser(err error) (line int, text string) {
	line, text = 1, err.Error()
	if m := parserRE.FindStringSubmatch(text); m != nil {
		_, _ = fmt.Sscan(m[1], &line)
		text = m[2]
	}
	return line, text
}

func (t Template) check(r *Report) {
	if len(t.Text) > maxTemplate {
		r.At("text").Errorf("text has %d bytes, a template has at most %d", len(t.Text), maxTemplate)
		return
	}
	if len(t.Vars) > maxVars {
		r.At("vars").Errorf("a template has at most %d variables", maxVars)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Vars)) {
		if !varRE.MatchString(name) {
			r.At("vars", name).Errorf("variable %.70q must be letters, digits and '_', at most 64, and start with no digit", name)
		}
	}
	t.parse(func(line int, text string) { r.At("text").Errorf("line %d: %s", line, text) })
}

// SecretNames lists the secrets that the text uses, each once, sorted.
func (t Template) SecretNames() []string { return t.parse(func(int, string) {}).secrets }

// FactNames lists the facts that the text uses, each once, sorted.
func (t Template) FactNames() []string { return t.parse(func(int, string) {}).facts }

// A walker looks at every node of a template once.
type walker struct {
	t              Template
	problem        func(line int, text string)
	secrets, facts []string
}

func (w *walker) bad(n parse.Node, format string, args ...any) {
	pos := min(int(n.Position()), len(w.t.Text))
	w.problem(1+strings.Count(w.t.Text[:pos], "\n"), fmt.Sprintf(format, args...))
}

func (w *walker) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode:
		case *parse.ActionNode:
			w.pipe(n.Pipe)
		case *parse.IfNode:
			w.pipe(n.Pipe)
			w.list(n.List)
			w.list(n.ElseList)
		case *parse.RangeNode:
			w.bad(n, "range is not part of templates: there are no loops")
		case *parse.WithNode:
			w.bad(n, "with is not part of templates: use if")
		default:
			w.bad(n, "%.40q is not part of templates", n.String())
		}
	}
}

func (w *walker) pipe(p *parse.PipeNode) {
	if len(p.Decl) > 0 {
		w.bad(p, "variables are declared in vars, and not in the text")
		return
	}
	for i, c := range p.Cmds {
		w.command(c, i > 0)
	}
}

// command looks at one step of a pipe; more is true if the step before gives it a value.
func (w *walker) command(c *parse.CommandNode, more bool) {
	first, call := c.Args[0].(*parse.IdentifierNode)
	if !call {
		if len(c.Args) > 1 || more {
			w.bad(c, "%.40q is no function: there are %s", c.Args[0].String(), strings.Join(functions, ", "))
			return
		}
		w.value(c.Args[0])
		return
	}
	args := len(c.Args) - 1
	if more {
		args++
	}
	f, known := templateFuncs[first.Ident]
	switch {
	case !known:
		w.bad(c, "there is no function %q%s; there are %s", first.Ident, didYouMean(first.Ident, functions), strings.Join(functions, ", "))
		return
	case args < f.least || f.most > 0 && args > f.most:
		w.bad(c, "%s takes %s, and is given %d", first.Ident, f.takes(), args)
		return
	case first.Ident == "secret":
		w.secret(c)
		return
	}
	for _, a := range c.Args[1:] {
		w.value(a)
	}
}

func (w *walker) secret(c *parse.CommandNode) {
	var name *parse.StringNode
	if len(c.Args) == 2 {
		name, _ = c.Args[1].(*parse.StringNode)
	}
	switch {
	case name == nil:
		w.bad(c, "secret takes the name of a secret in quotes, so that everybody sees which secrets a template uses")
	case !validSecretName(name.Text): // it is not shown: it may be the value
		w.bad(c, "what secret is given is not the name of a secret of the device: letters, digits, '_', '.' and '-', at most 128; its value has no place here")
	default:
		w.secrets = append(w.secrets, name.Text)
	}
}

func (w *walker) value(n parse.Node) {
	switch n := n.(type) {
	case *parse.StringNode, *parse.BoolNode:
	case *parse.PipeNode:
		w.pipe(n)
	case *parse.IdentifierNode:
		w.command(&parse.CommandNode{Pos: n.Pos, Args: []parse.Node{n}}, false)
	case *parse.FieldNode:
		w.field(n)
	default:
		w.bad(n, "%.40q is not part of templates: there are .vars.NAME, .facts.NAME, texts in quotes, and functions", n.String())
	}
}

func (w *walker) field(n *parse.FieldNode) {
	path := strings.Join(n.Ident, ".")
	switch {
	case len(n.Ident) != 2 || n.Ident[0] != "vars" && n.Ident[0] != "facts":
		w.bad(n, "there is no .%.70s: there are .vars.NAME and .facts.NAME", path)
	case n.Ident[0] == "facts" && !slices.Contains(FactNames, n.Ident[1]):
		w.bad(n, "there is no fact %q%s; there are %s", n.Ident[1], didYouMean(n.Ident[1], FactNames), strings.Join(FactNames, ", "))
	case n.Ident[0] == "facts":
		w.facts = append(w.facts, n.Ident[1])
	default:
		if _, ok := w.t.Vars[n.Ident[1]]; !ok {
			w.bad(n, "vars declares no variable %q%s", n.Ident[1], didYouMean(n.Ident[1], slices.Sorted(maps.Keys(w.t.Vars))))
		}
	}
}
