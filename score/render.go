package score

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Bounds of what a template makes: of the text and of every value on the way, and of all values
// together, so that it ends soon.
const (
	maxRendered = 1 << 20
	maxWork     = 16 << 20
)

// Render fills in the holes. facts and secrets are by name; what the text uses and is not there
// is an error, which names it. An error never holds a value.
func (t Template) Render(facts map[string]string, secrets map[string][]byte) (string, error) {
	var bad error
	p := t.parse(func(line int, text string) {
		if bad == nil {
			bad = fmt.Errorf("line %d: %s", line, text)
		}
	})
	if bad != nil {
		return "", bad
	}
	r := renderer{vars: t.Vars, facts: facts, secrets: map[string]string{}}
	for name, b := range secrets {
		r.secrets[name] = string(b) // once, however often it is used
	}
	err := r.list(p.root)
	return r.out.String(), err
}

// A value is text, or the answer to a question, or a fact that the device does not know.
type value struct {
	text    string
	truth   bool
	is      bool   // truth and not text
	missing string // name of the fact
}

func truthOf(v value) bool { return v.is && v.truth || !v.is && v.text != "" }

func answer(b bool) value { return value{is: true, truth: b} }

// string is v as text.
func (v value) string() (string, error) {
	switch {
	case v.missing != "":
		return "", fmt.Errorf("the device does not know its fact %q: give another text for it, as in {{ default \"none\" .facts.%[1]s }}", v.missing)
	case v.is && v.truth:
		return "true", nil
	case v.is:
		return "false", nil
	}
	return v.text, nil
}

type renderer struct {
	vars, facts, secrets map[string]string
	out                  strings.Builder
	work                 int
}

var errTooLarge = fmt.Errorf("the template makes more than %d bytes", maxRendered)

func (r *renderer) list(l *parse.ListNode) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		var err error
		switch n := n.(type) {
		case *parse.TextNode:
			err = r.write(string(n.Text))
		case *parse.ActionNode:
			var v value
			var s string
			if v, err = r.pipe(n.Pipe); err == nil {
				s, err = v.string()
			}
			if err == nil {
				err = r.write(s)
			}
		case *parse.IfNode:
			var v value
			if v, err = r.pipe(n.Pipe); err == nil && truthOf(v) {
				err = r.list(n.List)
			} else if err == nil {
				err = r.list(n.ElseList)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) write(s string) error {
	if r.out.Len()+len(s) > maxRendered {
		return errTooLarge
	}
	r.out.WriteString(s)
	return nil
}

func (r *renderer) pipe(p *parse.PipeNode) (v value, err error) {
	for i, c := range p.Cmds {
		var given []value
		if i > 0 {
			given = []value{v}
		}
		if v, err = r.command(c, given); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (r *renderer) command(c *parse.CommandNode, given []value) (value, error) {
	name, call := c.Args[0].(*parse.IdentifierNode)
	if !call {
		return r.value(c.Args[0])
	}
	if name.Ident == "secret" {
		return r.secret(c.Args[1].(*parse.StringNode).Text)
	}
	var args []value
	for _, a := range c.Args[1:] {
		v, err := r.value(a)
		if err != nil {
			return v, err
		}
		args = append(args, v)
	}
	v, err := templateFuncs[name.Ident].call(append(args, given...))
	if r.work += len(v.text); err == nil && (len(v.text) > maxRendered || r.work > maxWork) {
		err = errTooLarge
	}
	if err != nil {
		return value{}, fmt.Errorf("%s: %w", name.Ident, err)
	}
	return v, nil
}

func (r *renderer) secret(name string) (value, error) {
	text, ok := r.secrets[name]
	if !ok {
		return value{}, fmt.Errorf("the device has no secret %q", name)
	}
	return value{text: text}, nil
}

func (r *renderer) value(n parse.Node) (value, error) {
	switch n := n.(type) {
	case *parse.StringNode:
		return value{text: n.Text}, nil
	case *parse.BoolNode:
		return answer(n.True), nil
	case *parse.PipeNode:
		return r.pipe(n)
	case *parse.IdentifierNode:
		return r.command(&parse.CommandNode{Args: []parse.Node{n}}, nil)
	case *parse.FieldNode:
		if n.Ident[0] == "vars" {
			return value{text: r.vars[n.Ident[1]]}, nil
		}
		if v, ok := r.facts[n.Ident[1]]; ok {
			return value{text: v}, nil
		}
		return value{missing: n.Ident[1]}, nil
	}
	return value{}, errors.New("there is something in it that is no template") // parse has refused it
}

// A templateFunc is one function of templates.
type templateFunc struct {
	least, most int // arguments; no most: any number
	call        func([]value) (value, error)
}

func (f templateFunc) takes() string {
	switch {
	case f.most == 0:
		return fmt.Sprintf("%d values or more", f.least)
	case f.least == 1:
		return "one value"
	}
	return fmt.Sprintf("%d values", f.least)
}

// templateFuncs are all functions of templates. The last argument is the one that a pipe gives.
var templateFuncs = map[string]templateFunc{
	"secret": {1, 1, nil}, // see renderer
	"upper":  {1, 1, onText(strings.ToUpper)},
	"lower":  {1, 1, onText(strings.ToLower)},
	"trim":   {1, 1, onText(strings.TrimSpace)},
	"quoteShell": {1, 1, onText(func(s string) string { // one word of a POSIX shell
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	})},
	"quoteSystemd": {1, 1, onText(quoteSystemd)},
	"quoteJSON": {1, 1, func(args []value) (value, error) { // a string of JSON; YAML reads it, too
		s, err := args[0].string()
		if err != nil {
			return value{}, err
		}
		if !utf8.ValidString(s) {
			return value{}, errors.New("the value is no UTF-8 text")
		}
		b, err := json.Marshal(s)
		return value{text: string(b)}, err
	}},
	"default": {2, 2, func(args []value) (value, error) { // the first, if the second is empty or not known
		if v := args[1]; v.missing == "" && (v.is || v.text != "") {
			return v, nil
		}
		return args[0], nil
	}},
	"join": {2, 0, func(args []value) (value, error) { // the first stands between the others
		texts, size := make([]string, len(args)), 0
		for i, a := range args {
			var err error
			if texts[i], err = a.string(); err != nil {
				return value{}, err
			}
			if size += len(texts[i]); i > 1 {
				size += len(texts[0])
			}
			if size > maxRendered { // before it is made: some kilobytes of text could name some megabytes a thousand times
				return value{}, errTooLarge
			}
		}
		return value{text: strings.Join(texts[1:], texts[0])}, nil
	}},
	"eq":  {2, 2, compare(true)},
	"ne":  {2, 2, compare(false)},
	"and": {2, 0, func(args []value) (value, error) { return answer(!slices.ContainsFunc(args, isFalse)), nil }},
	"or":  {2, 0, func(args []value) (value, error) { return answer(slices.ContainsFunc(args, truthOf)), nil }},
	"not": {1, 1, func(args []value) (value, error) { return answer(!truthOf(args[0])), nil }},
}

func isFalse(v value) bool { return !truthOf(v) }

func onText(f func(string) string) func([]value) (value, error) {
	return func(args []value) (value, error) {
		s, err := args[0].string()
		if err != nil {
			return value{}, err
		}
		return value{text: f(s)}, nil
	}
}

func compare(equal bool) func([]value) (value, error) {
	return func(args []value) (value, error) {
		a, err := args[0].string()
		if err != nil {
			return value{}, err
		}
		b, err := args[1].string()
		return answer((a == b) == equal), err
	}
}

// quoteSystemd makes one word of a setting in a unit file: quotes, line breaks and % mean
// themselves. In a command line, $ still stands for a variable.
func quoteSystemd(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '%':
			b.WriteString("%%")
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
