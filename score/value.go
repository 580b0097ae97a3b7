package score

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Value is text, or names a secret of the device whose value it is. It is written as the
// text itself, "UTC", or as {secret: db-password}.
type Value struct {
	Text   string
	Secret string // empty: Text counts
}

// Text is a value that is written in the manifest.
func Text(s string) Value { return Value{Text: s} }

// FromSecret is a value that only the device has.
func FromSecret(name string) Value { return Value{Secret: name} }

// MarshalJSONTo writes the text, or a SecretRef.
func (v Value) MarshalJSONTo(enc *jsontext.Encoder) error {
	switch {
	case v.Secret == "":
		return json.MarshalEncode(enc, v.Text)
	case v.Text != "":
		return errors.New("cannot encode a value that is text and a secret")
	}
	return json.MarshalEncode(enc, SecretRef{v.Secret})
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes.
func (v *Value) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var ref SecretRef
	switch k := dec.PeekKind(); k {
	case '"':
		*v = Value{}
		return json.UnmarshalDecode(dec, &v.Text)
	case '{':
		if err := json.UnmarshalDecode(dec, &ref); err != nil {
			return err
		}
		if ref.Secret == "" {
			return errors.New("a secret needs a name: {secret: NAME}")
		}
		*v = Value{Secret: ref.Secret}
		return nil
	case 'n':
		return errors.New("found null: leave the field out, or give it a value")
	default:
		return errors.New("found " + words[k] + " where text is wanted: quote it")
	}
}

// MarshalJSON serves encoding/json.
func (v Value) MarshalJSON() ([]byte, error) { return Encode(v) }

// UnmarshalJSON serves encoding/json.
func (v *Value) UnmarshalJSON(data []byte) error { return Decode(data, v) }
