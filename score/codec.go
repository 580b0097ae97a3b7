package score

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A DecodeError says what could not be read, and where.
type DecodeError struct {
	Path string // JSON pointer
	Text string
}

func (e *DecodeError) Error() string {
	if e.Path == "" {
		return "cannot decode: " + e.Text
	}
	return "cannot decode " + clipPath(e.Path) + ": " + e.Text
}

// Encode returns v as JSON: fields in their order, map keys sorted, no escaping
// for HTML. Equal values give equal bytes. Sections that are carried and not read keep
// their order and the spelling of their texts and numbers; white space between them goes.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

// Write is Encode into w.
func Write(w io.Writer, v any) error {
	return json.MarshalWrite(w, v, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

// Decode reads exactly one JSON value into v. Unknown fields, fields that differ in
// case, repeated keys, data behind the value and invalid UTF-8 are errors, of type
// *DecodeError.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if se, ok := errors.AsType[*json.SemanticError](err); ok {
		return semantic(se)
	}
	if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		text := strings.TrimPrefix(se.Err.Error(), "jsontext: ")
		if errors.Is(se.Err, jsontext.ErrDuplicateName) {
			text = fmt.Sprintf("key %q is given twice", clip(se.JSONPointer.LastToken()))
		}
		return &DecodeError{string(se.JSONPointer), text}
	}
	return &DecodeError{"", err.Error()}
}

func semantic(se *json.SemanticError) *DecodeError {
	e := &DecodeError{Path: string(se.JSONPointer)}
	switch {
	case errors.Is(se.Err, json.ErrUnknownName):
		e.Text = fmt.Sprintf("unknown field %q", clip(se.JSONPointer.LastToken()))
	case se.Err != nil && strings.HasSuffix(se.Err.Error(), "must be string type"):
		e.Text = fmt.Sprintf("found %s where text is wanted: quote it", words[se.JSONKind])
	case se.Err != nil:
		e.Text = se.Err.Error()
	default:
		e.Text = fmt.Sprintf("found %s where another type is wanted", words[se.JSONKind])
	}
	return e
}

// words names the kinds of JSON values for people.
var words = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "text", '0': "a number", '{': "a mapping", '[': "a list",
}
