package score

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// secretWords are last words of names whose value is a secret. What comes behind them makes it something else:
// password_file, token_ttl, PasswordAuthentication.
var secretWords = map[string]bool{
	"password": true, "passwd": true, "passphrase": true, "passcode": true, "passwort": true, "pass": true, "pwd": true, "requirepass": true, "masterauth": true,
	"secret": true, "token": true, "psk": true, "apikey": true, "secretkey": true, "privatekey": true, "accesskey": true, "authkey": true, "credential": true, "credentials": true,
	"authorization": true, "cookie": true, "presharedkey": true, "userpass": true,
}

// secretPairs are last two words of such names.
var secretPairs = map[string]bool{
	"api key": true, "secret key": true, "private key": true, "access key": true, "auth key": true, "signing key": true, "encryption key": true, "master key": true,
	"account key": true, "shared key": true, "session key": true, "license key": true, "wep key": true, "network key": true, "pre shared": true,
}

// otherPairs end in a word of secretWords and name none: settings of proxies and of systemd.
var otherPairs = map[string]bool{
	"proxy pass": true, "fastcgi pass": true, "uwsgi pass": true, "scgi pass": true, "grpc pass": true, "memcached pass": true,
	"load credential": true, "import credential": true, "no password": true, "without password": true,
}

// headerNames are headers that carry one, for lists of names and values.
var headerNames = map[string]bool{
	"authorization": true, "proxy-authorization": true, "cookie": true, "set-cookie": true, "x-api-key": true, "x-auth-token": true, "private-token": true,
}

// NamesSecret reports whether a name, such as DB_PASSWORD, says that its value is a secret, which is not to be shown.
func NamesSecret(name string) bool { return secretName(name) }

// secretName reports whether a name says that its value is a secret.
func secretName(name string) bool {
	w := nameWords(name)
	if len(w) == 0 {
		return false
	}
	last := w[len(w)-1]
	if len(w) == 1 {
		return secretWords[last]
	}
	pair := w[len(w)-2] + " " + last
	return secretPairs[pair] || secretWords[last] && !otherPairs[pair]
}

// nameWords takes a name apart: DB_PASSWORD2, apiKey, client-secret.
func nameWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words, word = append(words, strings.ToLower(string(word))), nil
		}
	}
	rs := []rune(strings.TrimRight(name, "0123456789_.-"))
	for i, c := range rs {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			flush()
			continue
		case unicode.IsUpper(c) && i > 0 && (unicode.IsLower(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1]) && unicode.IsUpper(rs[i-1])):
			flush()
		}
		word = append(word, c)
	}
	flush()
	return words
}

// describe is a name for people; it is the author's, and may be long.
func describe(name string) string { return strconv.Quote(name[:min(len(name), 60)]) }

// plainWords are values that say something about a secret and are none.
var plainWords = map[string]bool{
	"": true, "true": true, "false": true, "yes": true, "no": true, "on": true, "off": true, "null": true, "nil": true, "none": true, "~": true, "0": true, "1": true,
	"required": true, "requisite": true, "sufficient": true, "optional": true, "include": true, "substack": true, "prompt": true, "ask": true, "auto": true, "default": true, "disabled": true, "enabled": true,
	"string": true, "str": true, "text": true, "bytes": true, "object": true, "basic": true, "bearer": true, "digest": true, "negotiate": true, "prohibit-password": true, "files": true, "compat": true, "sss": true, "|": true, ">": true, "{": true, "[": true,
}

// references are values that name a secret, or stand for one.
var references = regexp.MustCompile(`^(` +
	`\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*(:?\?[^}]*)?\}|\$\(.*\)?|\$\{\{.*\}\}|` + // variables
	`%[A-Za-z{(].*|\{\{.*|` + // specifiers and templates
	`@\S+|!\w+.*|<.*>?|` + // a file, a tag, a gap to be filled in
	`(file|env|vault|secret|secrets|op|ref\+\w+|credential|systemd|keyring|pass|aws-sm|gcp-sm):.*|` +
	`([\w.@-]+:)?[~.]{0,2}(/[\w.@%{}$-]+)+/?|` + // a path, of a name or by itself
	`[*xX.•?_-]+|\.\.\.|` + // masked
	`[A-Za-z_][\w.]*[(\[].*` + // an expression of a program
	`)$`)

// literalValue reports whether a value beside the name of a secret is that secret.
func literalValue(value string) bool {
	v := strings.TrimSpace(value)
	if len(v) > 1 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		v = strings.TrimSpace(v[1 : len(v)-1])
	}
	return !plainWords[strings.ToLower(v)] && !references.MatchString(v)
}

func itoa(n int) string { return strconv.Itoa(n) }

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	return keys
}
