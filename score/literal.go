package score

import (
	"reflect"
	"regexp"
	"strings"
)

// A secret that is written into a document is in the repository, in the store of the fleet and on every device that
// gets it, for ever. So what looks like one is refused, wherever text is: contents, templates, unit files, environments,
// arguments, labels. An author who knows better says noSecrets: true beside the spec. Problems name the place and the
// line, and never the text.

// checkLiterals reports what looks like a secret in a spec.
func checkLiterals(r *Report, s Spec) {
	if _, opaque := s.(Opaque); !opaque {
		walkTexts(r, reflect.ValueOf(s))
	}
}

// maxLiterals is how many places of one text are told.
const maxLiterals = 5

func reportText(r *Report, key, text string) {
	for _, f := range findLiterals(key, text) {
		where := ""
		if strings.Contains(text, "\n") {
			where = " in line " + itoa(f.line)
		}
		r.Errorf("it looks like a secret is written here%s (%s): keep the value on the device and name it, as in {secret: NAME}, or in a template; if it is none, say so with noSecrets: true on the score", where, f.what)
	}
}

// walkTexts reports the texts in v. The names of struct fields are ours and say nothing of what is in them; those of
// maps are the author's.
func walkTexts(r *Report, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		reportText(r, "", v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			walkTexts(r, v.Elem())
		}
	case reflect.Struct:
		switch t := v.Interface().(type) {
		case SecretRef:
			return // a name
		case Value:
			if t.Secret == "" {
				reportText(r, "", t.Text)
			}
			return
		}
		for f, field := range v.Fields() {
			if field.IsZero() { // as most are: no text is in it
				continue
			}
			at := r
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous || name != "" {
				at = r.At(name)
			}
			walkTexts(at, field)
		}
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			field := v.MapIndex(k)
			text, is := textOf(field)
			if is {
				reportText(r.At(k.String()), k.String(), text)
			} else {
				walkTexts(r.At(k.String()), field)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		before := ""
		for i, e := range v.Seq2() {
			text, is := textOf(e)
			if is { // of a list of arguments, or of headers, the one before may say what this one is
				key := ""
				if strings.HasPrefix(before, "-") || strings.HasSuffix(before, ":") || headerNames[strings.ToLower(before)] {
					key = strings.Trim(before, "-:")
				}
				reportText(r.At(int(i.Int())), key, text)
			} else {
				walkTexts(r.At(int(i.Int())), e)
			}
			before = text
		}
	}
}

// textOf is what is written of a text; a reference to a secret is none.
func textOf(v reflect.Value) (text string, is bool) {
	if v.Kind() == reflect.String {
		return v.String(), true
	}
	t, is := v.Interface().(Value)
	return t.Text, is && t.Secret == ""
}

// A found literal is one place that looks like a secret.
type foundLiteral struct {
	what string
	line int
}

// findLiterals looks at a text, and at what the name beside it says of it.
func findLiterals(key, text string) (found []foundLiteral) {
	if key != "" && secretName(key) && !strings.Contains(text, "\n") && literalValue(text) {
		return []foundLiteral{{"the value of " + describe(key), 1}}
	}
	if !suspicious(text) {
		return nil
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if what := LooksSecret(strings.TrimRight(line, "\r\n")); what != "" {
			if found = append(found, foundLiteral{what, n}); len(found) == maxLiterals {
				return found
			}
		}
	}
	return found
}

// LooksSecret says what looks like a secret in a line of text; empty: nothing does. It is what Validate refuses in
// documents, for contents that are beside them.
func LooksSecret(line string) (what string) {
	if !suspicious(line) {
		return ""
	}
	return literalIn(line)
}

// stems are such that every text which a detector finds has one of them, in lower case.
var stems = []string{
	"pass", "pwd", "secret", "token", "psk", "key", "cred", "auth", "cookie", "://", "eyj", "akia", "asia",
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "sk_live_", "aiza", "dckr_pat_", "npm_", "hf_", "curl",
	"$1$", "$2", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2", "{ss", "{sha", "{sm", "{md5", "{crypt", "sig=", "signature=",
}

func suspicious(text string) bool {
	if longRun(text) {
		return true
	}
	lower := strings.ToLower(text)
	for _, s := range stems {
		if strings.Contains(lower, s) {
			return true
		}
	}
	return false
}

var natsSeed = regexp.MustCompile(`\bS[AOUNCX][A-Z2-7]{56}\b`)

// longRun reports whether a text has what may be a NATS key, whose stem is no word: capitals and digits, 58 in a row.
func longRun(text string) bool {
	n := 0
	for i := range len(text) {
		if c := text[i]; c >= 'A' && c <= 'Z' || c >= '2' && c <= '7' {
			if n++; n == 58 {
				return true
			}
		} else {
			n = 0
		}
	}
	return false
}

// A detector finds one form of secret in a line.
type detector struct {
	what string
	re   *regexp.Regexp
	// judge looks at what the expression found: its groups. nil: all of it is a secret.
	judge func(groups []string) bool
}

// named is for expressions that find a name and a value.
func named(groups []string) bool { return secretName(groups[1]) && literalValue(groups[2]) }

const (
	nameGroup  = `([A-Za-z][\w.-]*)`
	valueGroup = `("(?:[^"\\]|\\.)*"|'[^']*'|\$\{[^}\s]*\}|[^\s"',;&)}\]<]+)`
)

// strong detectors find what is a secret wherever it is; weak ones go by a name, and comments often have such names.
var strong = []detector{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|PuTTY-User-Key-File-\d|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}`), nil},
	{"a seed of a NATS key", natsSeed, nil},
	{"a signed web token", regexp.MustCompile(`\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}`), nil},
	{"a cloud key", regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{35}\b`), nil},
	{"a token of a service", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|sk_live_\w{10,}|dckr_pat_[\w-]{10,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,})`), nil},
	{"a URL with a password", regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://([^\s/:@"'<>]*):([^\s/@"'<>]+)@`), func(g []string) bool { return literalValue(g[2]) }},
	{"a URL that is a key itself", regexp.MustCompile(`https?://(hooks\.slack\.com/services/\w|discord(app)?\.com/api/webhooks/\d)|[?&](X-Amz-Signature|sig|signature)=[\w%+/-]{16,}`), nil},
	{"a hash of a password", regexp.MustCompile(`\$(1|2[abxy]|5|6|7|y|gy|apr1|argon2(id|i|d)|scrypt|pbkdf2-sha\d+)\$\S{8,}|\{(S?SHA|S?MD5|CRYPT|SSHA)\d*\}[\w+/=]{8,}`), nil},
	{"an authorization", regexp.MustCompile(`(?i)\bauthorization["']?\s*[:=]\s*["']?(basic|bearer|token|digest|negotiate)\s+` + valueGroup), func(g []string) bool { return literalValue(g[2]) }},
}

var weak = []detector{
	{"a default for a secret", regexp.MustCompile(`\$\{(\w+):?[-=]([^}]+)\}`), named},
	{"a cookie", regexp.MustCompile(`(?i)\b(?:set-)?cookie["']?\s*:\s*["']?([\w.-]+)=([^\s;"']{8,})`), func(g []string) bool { return literalValue(g[2]) }},
	{"a flag", regexp.MustCompile(`(?:^|[\s"'])--?` + nameGroup + `(?:=|[ \t]+)` + valueGroup), func(g []string) bool { return !strings.HasPrefix(g[2], "-") && named(g) }},
	{"a user with a password", regexp.MustCompile(`\bcurl\b.*\s(?:-u|--user)[ =]["']?([^\s:"']+):([^\s"']+)`), func(g []string) bool { return literalValue(g[2]) }},
	{"a password of a program", regexp.MustCompile(`\b(sshpass)\s+-p\s*(\S+)`), func(g []string) bool { return literalValue(g[2]) }},
	{"a name that says so", regexp.MustCompile(nameGroup + `["']?[ \t]*(?:=>|:=|[=:])[ \t]*` + valueGroup), named},
	{"a name that says so", regexp.MustCompile(`^\s*([a-z][a-z0-9_.-]*)[ \t]+` + valueGroup + `\s*$`), named},
	{"an element that says so", regexp.MustCompile(`<([A-Za-z][\w.:-]*)[^<>]*>([^<>]+)</`), named},
}

// literalIn says what looks like a secret in a line; empty: nothing.
func literalIn(line string) string {
	for _, d := range strong {
		if d.finds(line) {
			return d.what
		}
	}
	if t := strings.TrimLeft(line, " \t"); strings.HasPrefix(t, "#") || strings.HasPrefix(t, "//") || strings.HasPrefix(t, ";") {
		return ""
	}
	for _, d := range weak {
		if d.finds(line) {
			return d.what
		}
	}
	return ""
}

func (d detector) finds(line string) bool {
	if d.judge == nil {
		return d.re.MatchString(line)
	}
	for rest := line; ; {
		m := d.re.FindStringSubmatchIndex(rest)
		if m == nil {
			return false
		}
		groups := make([]string, len(m)/2)
		for i := range groups {
			if m[2*i] >= 0 {
				groups[i] = rest[m[2*i]:m[2*i+1]]
			}
		}
		if d.judge(groups) {
			return true
		}
		// What was taken for a value may be a name, as in Environment=PASSWORD=x. A reference is none.
		if last := groups[len(groups)-1]; m[3] <= 0 || strings.HasPrefix(last, "${") {
			rest = rest[m[1]:]
		} else {
			rest = rest[m[3]:]
		}
	}
}
