package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/score"
)

// refuseNull: a key without a value is a mistake. Extensions are not ours to judge.
func (d *Document) refuseNull(path string, n *node) {
	if path != "" && !strings.HasPrefix(path, "/extensions/") {
		d.place(n.line, n.column, path, `no value: give one (empty text is "", an empty list [], an empty mapping {}), or leave the key out`)
	}
}

// addKey adds c to n, unless n has it already.
func (d *Document) addKey(n *node, c key, path string) bool {
	if i := n.find(c.name); i >= 0 {
		d.place(c.line, c.column, path, "key %q is given twice: here and on line %d", c.name, n.keys[i].line)
		return false
	}
	n.addKey(c)
	return true
}

// Types of JSON, as JSON Schema names them.
const (
	Object  = "object"
	Array   = "array"
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
)

var wanted = map[string]string{
	Object: "a mapping is wanted", Array: "a list is wanted", String: "text is wanted",
	Integer: "a whole number is wanted", Number: "a number is wanted", Boolean: "true or false is wanted",
}

// WrongType reports that the value at path is not of the type want, which is one of JSON
// Schema's. pattern is that of the text which is wanted, or empty.
func (d *Document) WrongType(path, want, pattern string) {
	if d.full(score.Error) {
		return
	}
	at, _, _, whole := d.root.walk(path)
	if !whole {
		return
	}
	found, how := nounOf(at), advice(at, want, pattern)
	switch s := at.string(); {
	case want == Object || strings.HasSuffix(path, "/secret"): // it is not shown: it may be the value of a secret, instead of its name
		how = ""
	case at.kind == number && score.NamesSecret(path[strings.LastIndexByte(path, '/')+1:]):
		how = ": keep the value on the device, and name it, as in {secret: NAME}"
	case at.kind == number:
		found = "the number " + at.text
	case at.kind == text && len(s) <= 40 && !strings.ContainsAny(s, "\n\r"):
		found = fmt.Sprintf("the text %q", s)
	}
	d.Report(path, score.Error, "found %s where %s%s", found, wanted[want], how)
}

func nounOf(n *node) string {
	return map[byte]string{null: "nothing", boolean: n.text, number: "a number", object: "a mapping", list: "a list", text: "text"}[n.kind]
}

// NoMapping reports that the value at path is not the mapping that it must be, with fields.
func (d *Document) NoMapping(path string, fields []string) {
	if d.full(score.Error) {
		return
	}
	at, _, _, whole := d.root.walk(path)
	switch {
	case !whole:
	case slices.Equal(fields, []string{"secret"}) && at.kind != null:
		d.Report(path, score.Error, "found %s where the name of a secret is wanted: keep the value on the device, and name it, as in {secret: NAME}", nounOf(at))
	case len(fields) > 0 && at.kind != null:
		d.Report(path, score.Error, "found %s where a mapping is wanted, with the fields %s", nounOf(at), names(fields))
	default:
		d.WrongType(path, Object, "")
	}
}

// TooSmall reports that the number at path is less than least.
func (d *Document) TooSmall(path string, least float64) {
	d.Report(path, score.Error, "number is less than %v", least)
}

// TooLarge reports that the number at path is more than most.
func (d *Document) TooLarge(path string, most float64) {
	d.Report(path, score.Error, "number is more than %v", most)
}

// advice says how to write what is wanted.
func advice(at *node, want, pattern string) string {
	scalar := at.kind == number || at.kind == boolean
	f, known := formats[pattern]
	switch {
	case want == String && known && f.repair != nil && scalar && f.repair(at.text) != "":
		return fmt.Sprintf(": put it in quotes, %q", f.repair(at.text))
	case want == String && known:
		return fmt.Sprintf(", such as %q", f.example)
	case want == String && scalar:
		return fmt.Sprintf(": put it in quotes, %q", at.text)
	case want == Array && at.kind != object:
		return ": put it in brackets, or on a line of its own behind '- '"
	case (want == Boolean || want == Integer || want == Number) && at.kind == text:
		if k, _, what := resolve(at.string()); what == "" && (want == Boolean && k == boolean || want != Boolean && k == number) {
			return ": leave out the quotes"
		}
	}
	return ""
}

// A format is a text with a pattern.
type format struct {
	want, example string
	hidden        bool                       // the text is not shown: it may be a secret
	repair        func(number string) string // what a number was probably meant to be
}

var formats = map[string]format{
	score.ModePattern:     {want: "an octal mode of three or four digits", example: "0644", repair: repairMode},
	score.DurationPattern: {want: "a duration with its unit", example: "90s", repair: func(s string) string { return s + "s" }},
	score.PortPattern:     {want: "a port as HOST:CONTAINER, with an address before or a protocol behind", example: "8080:80"},
	score.VolumePattern:   {want: "a volume as SOURCE:TARGET, with ':ro' behind for read only", example: "/srv/web:/data"},
	score.DevicePattern:   {want: "a device below /dev as HOST, HOST:CONTAINER or HOST:CONTAINER:RIGHTS", example: "/dev/gpiochip0"},
	score.IDPattern:       {want: "an id of lower-case letters, digits, '.', '_' and '-', parts divided by '/'", example: "broker/conf"},
	score.SecretPattern:   {want: "the name of a secret of the device: letters, digits, '_', '.' and '-', at most 128; its value has no place here", example: "wifi-psk", hidden: true},
	score.NamePattern:     {want: "a name of lower-case letters, digits and '-', at most 63", example: "kiosk-7"},
}

func repairMode(s string) string {
	s = strings.TrimLeft(s, "0")
	if len(s) < 3 || len(s) > 4 || strings.Trim(s, "01234567") != "" {
		return ""
	}
	if len(s) == 3 {
		s = "0" + s
	}
	return s
}

// IsFormat reports whether pattern is that of a text type of the language, for which
// WrongText has words of its own.
func IsFormat(pattern string) bool {
	_, ok := formats[pattern]
	return ok
}

// WrongText reports that the text at path is not what pattern describes; about says the
// same for people, for patterns that are not of a text type of the language.
func (d *Document) WrongText(path, pattern, about string) {
	if d.full(score.Error) {
		return
	}
	at, _, _, whole := d.root.walk(path)
	if !whole || at.kind != text {
		return
	}
	f, ok := formats[pattern]
	switch {
	case ok && f.hidden:
		d.Report(path, score.Error, "it is not %s", f.want)
		return
	case ok:
		d.Report(path, score.Error, "%s is not %s, such as %q", shorten(at.string()), f.want, f.example)
		return
	}
	d.Report(path, score.Error, "%s does not fit: %s", shorten(at.string()), strings.TrimSuffix(about, "."))
}

// NotOneOf reports that the text at path is none of values.
func (d *Document) NotOneOf(path string, values []string) {
	if d.full(score.Error) {
		return
	}
	at, _, _, whole := d.root.walk(path)
	if !whole {
		return
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	s := at.string()
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	if len(values) == 1 {
		d.Report(path, score.Error, "%s is %s, want %s", name, shorten(s), quoted[0])
		return
	}
	nearest := "; there are "
	if v, ok := score.Nearest(s, values); ok {
		nearest = fmt.Sprintf(", did you mean %q? There are ", v)
	}
	d.Report(path, score.Error, "unknown %s %s%s%s%s", name, shorten(s), nearest, strings.Join(quoted, ", "), decommission(path, at))
}

// decommission is the advice for who writes state: absent of what has no such state: what is removed with its data is
// removed in words.
func decommission(path string, state *node) string {
	if !stateOfScore.MatchString(path) || state.string() != "absent" {
		return ""
	}
	return "; to remove what a score describes, keep its spec and write decommission: true beside it"
}

var stateOfScore = regexp.MustCompile(`/scores/[0-9]+/spec/state$`)

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// Fields reports keys of the mapping at path that are not known, and required ones that
// it lacks. A key that is missing because it is misspelt is reported once.
func (d *Document) Fields(path string, known, required []string) {
	if d.full(score.Error) {
		return
	}
	at, _, _, whole := d.root.walk(path)
	if !whole || at.kind != object {
		return
	}
	has := func(name string) bool { return at.find(name) >= 0 }
	lacks := slices.ContainsFunc(required, func(name string) bool { return !has(name) })
	if !lacks && !slices.ContainsFunc(at.keys, func(k key) bool { return !slices.Contains(known, k.name) }) {
		return // as nearly always
	}
	var free []string
	for _, k := range known {
		if !has(k) {
			free = append(free, k)
		}
	}
	isKnown := map[string]bool{}
	for _, k := range known {
		isKnown[k] = true
	}
	misspelt := map[string]bool{}
	for i, k := range at.keys {
		if isKnown[k.name] {
			continue
		}
		advice := ""
		if n, ok := nearest(k.name, free); ok {
			advice = fmt.Sprintf(", did you mean `%s`?", n)
			misspelt[n] = true
		} else if len(known) > 0 {
			advice = "; there " + is(len(known)) + " " + names(known)
		}
		p := path + "/" + escape(k.name)
		advice += decommission(p, at.items[i])
		if !d.silenced(p) {
			d.place(k.line, k.column, p, "unknown field `%s`%s", k.name, advice)
		}
	}
	var missing []string
	for _, k := range required {
		if !has(k) {
			if p := path + "/" + escape(k); !misspelt[k] && !d.silenced(p) {
				missing = append(missing, k)
			}
			d.taint(path + "/" + escape(k))
		}
	}
	if len(missing) == 0 {
		return
	}
	line, column := d.root.position(path)
	what := "field " + names(missing) + " is missing"
	if len(missing) > 1 {
		what = "fields " + names(missing) + " are missing"
	}
	d.add(line, column, path, score.Error, what)
}

// nearest is what a key was probably meant to be: it differs in a letter or two, or in
// case, or goes on where the right one ends.
func nearest(name string, free []string) (string, bool) {
	name = strings.ToLower(name)
	if n, ok := score.Nearest(name, free); ok {
		return n, true
	}
	best := ""
	for _, f := range free {
		if l := strings.ToLower(f); len(l) > max(3, len(best)) && strings.HasPrefix(name, l) {
			best = f
		}
	}
	return best, best != ""
}

func is(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func names(known []string) string {
	quoted := make([]string, len(known))
	for i, k := range known {
		quoted[i] = "`" + k + "`"
	}
	return strings.Join(quoted, ", ")
}
