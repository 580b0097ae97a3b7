package source

import (
	"regexp"
	"strings"
)

// resolve says what a plain scalar is. what is not empty for a scalar that one version
// of YAML, or one reader, takes for text and another does not: it names what.
func resolve(s string) (kind byte, canonical, what string) {
	if s == "" {
		return null, "null", ""
	}
	switch s[0] {
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', '.':
		return resolveNumber(s)
	}
	switch s {
	case "~", "null", "Null", "NULL":
		return null, "null", ""
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return boolean, strings.ToLower(s), ""
	case "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF":
		return text, s, "true or false"
	}
	return text, s, ""
}

var (
	// plain numbers of JSON, with an exponent only in the form that no reader takes for text
	numberRE = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+([eE][-+][0-9]+)?)?$`)
	// what some version of YAML takes for a number
	oddRE  = regexp.MustCompile(`^[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*|([0-9][0-9_]*)?\.[0-9_]*([eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+)$`)
	nanRE  = regexp.MustCompile(`^[-+]?\.(inf|Inf|INF|nan|NaN|NAN)$`)
	timeRE = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
	dateRE = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+[0-9]|$)`)
)

func resolveNumber(s string) (kind byte, canonical, what string) {
	switch {
	case numberRE.MatchString(s):
		return number, s, ""
	case strings.IndexFunc(s, func(r rune) bool { return r != '.' && r != '-' && r != '+' }) < 0:
		return text, s, ""
	case oddRE.MatchString(s):
		return text, s, "a number"
	case nanRE.MatchString(s):
		return text, s, "no number"
	case timeRE.MatchString(s):
		return text, s, "a number in base 60"
	case dateRE.MatchString(s):
		return text, s, "a date"
	}
	return text, s, ""
}
