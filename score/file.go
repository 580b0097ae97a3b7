package score

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func init() {
	Register(Definition[File]{
		Doc:    "A regular file, with its content and its rights.",
		Needs:  []Capability{CapFiles},
		Sample: File{Path: "/etc/motd", Content: "Welcome.\n", Mode: 0o644, Owner: "root", Group: "root"},
	})
}

// KindFile is the kind of File.
const KindFile Kind = "file"

// A Creation says whether a file is kept as it was created.
type Creation string

// Creations. What is left out is CreateAlways.
const (
	CreateAlways Creation = "always" // the content is kept true
	CreateOnce   Creation = "once"   // the content is written if there is no file, and is the device's own from then on
)

// File is a regular file. Its content is one of content, contentFrom, template and blob; with
// attributesOnly it has none of them, and its content is not managed. Parent
// directories that are missing are made, 0755. Links are never followed: a link in the place
// of the file is reported, and left alone. Access control lists and extended attributes of a
// file that is replaced are kept.
type File struct {
	// Path of the file: absolute and clean.
	Path string `json:"path" effect:"remove" jsonschema:"pattern=^/,maxLength=4095,example=/etc/motd"`
	// State is present, or absent for a file that is to be gone. If it is left out, present.
	State Presence `json:"state,omitempty" effect:"remove" jsonschema:"enum=present,enum=absent"`
	// Content is the whole of the file, byte for byte.
	Content string `json:"content,omitempty" effect:"mutate" jsonschema:"example=Welcome."`
	// ContentFrom is a file beside the manifest, in the fleet repository, by its path from the manifest. When the manifest is published its content takes the place of this field: in the document if it is small text, as a blob if it is not.
	ContentFrom string `json:"contentFrom,omitempty" effect:"mutate" jsonschema:"maxLength=1024,example=files/motd"`
	// Template is text with holes that the device fills in.
	Template *Template `json:"template,omitempty" effect:"mutate"`
	// Blob is a content that is too large for a document. The device fetches it before anything is touched, and writes it as a whole or not at all.
	Blob *BlobRef `json:"blob,omitempty" effect:"mutate"`
	// AttributesOnly says that only mode, owner and group are managed. The file must be there.
	AttributesOnly bool `json:"attributesOnly,omitzero" effect:"mutate"`
	// Create says when the content is written. If it is left out, always: it is kept true. once: only if there is no file; what becomes of the content afterwards is the device's own, while mode, owner and group are kept.
	Create Creation `json:"create,omitempty" effect:"mutate" jsonschema:"enum=always,enum=once"`
	// Normalize lists differences of the content that do not count: crlf, how lines end; trailingNewline, how often the last line ends.
	Normalize []Normalization `json:"normalize,omitempty" effect:"mutate" jsonschema:"enum=crlf,enum=trailingNewline"`
	// Mode is the permission bits, setuid, setgid and sticky, as quoted octal text. It can be left out with attributesOnly, and is not managed then.
	Mode Mode `json:"mode,omitzero" effect:"mutate"`
	// Owner is the name or number of the user. If it is left out, the owner is not managed.
	Owner string `json:"owner,omitempty" effect:"mutate" jsonschema:"example=root"`
	// Group is the name or number of the group. If it is left out, the group is not managed.
	Group string `json:"group,omitempty" effect:"mutate" jsonschema:"example=root"`
}

// Kind is KindFile.
func (File) Kind() Kind { return KindFile }

// empty reports whether the file is to have no content.
func (f File) empty() bool {
	return f.Content == "" && f.ContentFrom == "" && f.Template == nil && f.Blob == nil && !f.AttributesOnly && f.State != Absent
}

// closed reports whether nobody is to have a right.
func (f File) closed() bool { return f.Mode == 0 && !f.AttributesOnly && f.State != Absent }

// requires says that a file is not empty, and not closed to everybody, because somebody forgot
// to say what it is.
func (f File) requires() (fields []lack) {
	if f.empty() {
		fields = append(fields, lack{"content", "say what is in the file by content, contentFrom, template or blob, or write attributesOnly: true"})
	}
	if f.closed() {
		fields = append(fields, lack{"mode", `such as mode: "0644"`})
	}
	return fields
}

// MarshalJSONTo writes what requires wants to be given.
func (f File) MarshalJSONTo(enc *jsontext.Encoder) error {
	type plain File
	if !f.empty() && !f.closed() {
		return json.MarshalEncode(enc, plain(f))
	}
	full := struct {
		plain   `json:",inline"`
		Content *string `json:"content,omitzero"`
		Mode    *Mode   `json:"mode,omitzero"`
	}{plain: plain(f)}
	if f.empty() || f.Content != "" {
		full.Content = &f.Content
	}
	if f.closed() || f.Mode != 0 {
		full.Mode = &f.Mode
	}
	return json.MarshalEncode(enc, full)
}

// MarshalJSON serves encoding/json.
func (f File) MarshalJSON() ([]byte, error) { return Encode(f) }

// Claims is the path.
func (f File) Claims() []Resource { return []Resource{fileResource(f.Path)} }

// SecretNames lists the secrets that the template uses.
func (f File) SecretNames() []string {
	if f.Template == nil || f.State == Absent {
		return nil
	}
	return f.Template.SecretNames()
}

// BlobRefs is the blob.
func (f File) BlobRefs() []BlobRef {
	if f.Blob == nil || f.State == Absent {
		return nil
	}
	return []BlobRef{*f.Blob}
}

// ContentDigest is the sha256 of the content, in lower-case hex. It is not known of a
// template, whose content the device makes, nor if the content is not managed.
func (f File) ContentDigest() (sha256 string, known bool) {
	switch {
	case f.Template != nil || f.ContentFrom != "" || f.AttributesOnly || f.State == Absent:
		return "", false
	case f.Blob != nil:
		return f.Blob.SHA256, true
	}
	return digest(f.Content), true
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// AddFile adds a file to a draft.
func AddFile[P Files](d *Draft[P], id ID, f File) Ref[File] { return add(d, id, f) }

// Check refuses paths and accounts that no device may be given, and contents that contradict
// each other.
func (f File) Check(r *Report) {
	checkPath(r.At("path"), f.Path)
	checkFree(r.At("path"), f.Path)
	f.State.check(r.At("state"))
	f.checkContent(r)
	if templateRE.MatchString(f.Content) {
		r.At("content").Warnf("content has {{ … }} of a template and is written as it is: to fill it in, give it as template: {text: …}")
	}
	f.checkMode(r)
	checkOwners(r, f.Owner, f.Group)
	if f.Path == "/etc/resolv.conf" {
		r.At("path").Warnf("/etc/resolv.conf belongs to NetworkManager or systemd-resolved, which will write it again")
	}
}

func (f File) checkMode(r *Report) {
	at := r.At("mode")
	switch {
	case f.Mode == 0 && !f.closed():
		return
	case f.Mode > 0o7777:
		at.Errorf("mode has more than permission, setuid, setgid and sticky bits")
	case f.Mode&0o1000 != 0: // 644 in Go, without its 0o, is 01204
		at.Warnf("mode %s has the sticky bit, which means nothing for a file; in Go, write 0o644 and not 644", f.Mode)
	}
	if f.Mode&0o700 == 0 {
		at.Warnf("mode %s gives the owner no right at all", f.Mode)
	}
	if path.Dir(f.Path) == "/etc/NetworkManager/system-connections" && f.Mode&0o077 != 0 {
		at.Errorf("NetworkManager ignores a connection that others may read: mode must be \"0600\"")
	}
	if names := f.SecretNames(); len(names) > 0 && f.Mode&0o007 != 0 {
		at.Errorf("mode %s lets everybody on the device at a file that holds the secret %s: others must have no right, as in \"0640\"", f.Mode, names[0])
	}
}

// templateRE finds what is meant for a template.
var templateRE = regexp.MustCompile(`\{\{-?\s*(\.vars\.|\.facts\.|secret\s+")`)

// checkContent wants one content at most.
func (f File) checkContent(r *Report) {
	var given []string
	for _, c := range []struct {
		field string
		is    bool
	}{{"content", f.Content != ""}, {"contentFrom", f.ContentFrom != ""}, {"template", f.Template != nil}, {"blob", f.Blob != nil}} {
		if c.is {
			given = append(given, c.field)
		}
	}
	switch {
	case len(given) > 1:
		r.At(given[1]).Errorf("the content is given twice: by %s and by %s", given[0], given[1])
	case len(given) == 1 && f.AttributesOnly:
		r.At(given[0]).Errorf("attributesOnly says that the content is not managed: leave %s out, or attributesOnly", given[0])
	}
	if f.ContentFrom != "" && (!fs.ValidPath(f.ContentFrom) || f.ContentFrom == "." || len(f.ContentFrom) > 1024) {
		r.At("contentFrom").Errorf("contentFrom %q must be the path of a file from the folder of the manifest, such as files/motd: no '..', no '/' at its start", f.ContentFrom)
	}
	if f.Template != nil {
		f.Template.check(r.At("template"))
	}
	if f.Blob != nil {
		f.Blob.check(r.At("blob"))
	}
	if f.Create != "" && f.Create != CreateAlways && f.Create != CreateOnce {
		words := []string{string(CreateAlways), string(CreateOnce)}
		r.At("create").Errorf("unknown create %q%s", f.Create, didYouMean(string(f.Create), words))
	}
	if f.AttributesOnly {
		if f.Mode == 0 && f.Owner == "" && f.Group == "" && f.State != Absent {
			r.At("attributesOnly").Errorf("attributesOnly manages nothing: give a mode, an owner or a group")
		}
		if f.Create == CreateOnce {
			r.At("create").Errorf("create: once writes a content, and attributesOnly says that none is managed")
		}
	}
	checkNormalize(r.At("normalize"), f.Normalize)
	if len(f.Normalize) > 0 && (f.Blob != nil || f.AttributesOnly) {
		r.At("normalize").Errorf("normalize is for texts: for content and template")
	}
}
