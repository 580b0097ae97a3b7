package export

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// How a thing came to be read.
type how int

const (
	named    how = iota // it was asked for by name
	swept               // it is in a directory that was
	needed              // another thing refers to it
	optional            // another thing refers to it, and does without
)

// want reads what is at p, with all that is in it and all that it refers to. from is what refers to it.
func (x *reading) want(ctx context.Context, p, from string, by how) error {
	refuse := func(code Code, format string, args ...any) error {
		return x.refuse(Finding{p, from, code, fmt.Sprintf(format, args...)})
	}
	if path.Clean(p) != p || !path.IsAbs(p) || !plainText(p) {
		return refuse(CodeUnscannable, "%q is no absolute, clean path in plain text", p)
	}
	if _, known := x.things[p]; known {
		return nil
	}
	if from != "" && systems(p) {
		return x.mustBeThere(ctx, p, from, by)
	}
	st, err := x.snap.Look(ctx, p)
	switch {
	case err != nil:
		return x.unread(p, from, err)
	case st.Type == topology.Absent && by == optional:
		return nil
	case st.Type == topology.Absent:
		return refuse(CodeMissing, "it is not there")
	}
	class := classOf(p, st)
	if st.Type == topology.Special {
		return refuse(CodeType, "it is a pipe, a socket or a device, and no score makes one")
	}
	if class != score.PathVersionable && (class != score.PathUnknown || st.Type != topology.Directory) {
		passing := class == score.PathBackup || class == score.PathCache || class == score.PathRuntime
		if passing && (by == swept || by == optional) {
			x.leave(Finding{p, from, CodeClass, "by its path it is " + classWords[class]})
			return nil
		}
		code := CodeClass
		if from != "" {
			code = CodeOutside
		}
		return refuse(code, "by its path it is %s, and only configurations are exported", classWords[class])
	}
	if own := agents(p); own != "" {
		if by == swept {
			x.leave(Finding{p, from, CodeOwn, own})
			return nil
		}
		return refuse(CodeOwn, "%s", own)
	}
	t := &thing{path: p, from: from, st: st}
	if x.things[p] = t; len(x.things) > x.limits.Things {
		return x.full(Finding{p, from, CodeTooMany, fmt.Sprintf("there are more than %d files, directories and links", x.limits.Things)})
	}
	switch st.Type {
	case topology.Regular:
		return x.file(ctx, t)
	case topology.Directory:
		return x.directory(ctx, t)
	}
	return x.link(ctx, t)
}

// classOf is the class of a path. That of a directory for keys, or for a cache, is that of what is in it.
func classOf(p string, st topology.FileState) score.PathClass {
	if st.Type == topology.Directory {
		if in := score.ClassOfPath(path.Join(p, "x")); in == score.PathSecret || in == score.PathCache {
			return in
		}
	}
	return score.ClassOfPath(p)
}

// full ends the reading.
func (x *reading) full(f Finding) error {
	if err := x.refuse(f); err != nil {
		return err
	}
	return errFull
}

// unread is about what the device could not look at or read. What changed is for the next try, and a device that does
// not answer is no finding.
func (x *reading) unread(p, from string, err error) error {
	f := topology.FaultOf(err)
	switch f.Code {
	case topology.CodeChanged, topology.CodeCanceled, topology.CodeTimeout:
		return err
	case topology.CodeSymlink:
		return x.refuse(Finding{p, from, CodeType, f.Text})
	}
	return x.refuse(Finding{p, from, CodeUnreadable, f.Text})
}

// file reads a regular file, and looks for what must not be in it.
func (x *reading) file(ctx context.Context, t *thing) error {
	refuse := func(code Code, format string, args ...any) error {
		return x.refuse(Finding{t.path, t.from, code, fmt.Sprintf(format, args...)})
	}
	switch {
	case t.st.Mode&0o6000 != 0:
		return refuse(CodeType, "it is a program with the rights of another (mode %04o)", t.st.Mode)
	case t.st.Links > 1:
		return refuse(CodeType, "it has %d names, and nobody knows of which class the others are", t.st.Links)
	case t.st.Size > x.limits.File:
		return refuse(CodeTooLarge, "it has %d bytes, and at most %d are exported", t.st.Size, x.limits.File)
	}
	if o, owned := x.owner(fileResource(t.path)); owned {
		switch o.Applied.Spec.(type) {
		case score.File, score.Service, nil:
		default: // what it means is the kind's to say
			delete(x.things, t.path)
			return x.bringOwned(ctx, o, t.path)
		}
		if u, is := o.Applied.Spec.(score.SecretUser); is && len(u.SecretNames()) > 0 {
			return refuse(CodeSecret, "score %s of manifest %s puts the secret %s in it: it is in the manifest by name", o.Score, o.Manifest, u.SecretNames()[0])
		}
	}
	everybody, err := x.public(ctx, t)
	if err != nil {
		return x.unread(t.path, t.from, err)
	}
	if !x.asked[t.path] && !everybody {
		return refuse(CodePrivate, "not everybody may read it, so that it may hold a secret: name it by itself if it does not")
	}
	text, err := x.snap.Content(ctx, t.path, x.limits.File)
	if err != nil {
		return x.unread(t.path, t.from, err)
	}
	if x.total += int64(len(text)); x.total > x.limits.Total {
		return x.full(Finding{t.path, t.from, CodeTooMuch, fmt.Sprintf("with it there are more than %d bytes", x.limits.Total)})
	}
	t.text = string(text)
	if !plainText(t.text) {
		return refuse(CodeUnscannable, "it is no plain text, so that nobody can say what is in it")
	}
	n := 0
	for line := range strings.Lines(t.text) {
		n++
		if what := score.LooksSecret(strings.TrimRight(line, "\r\n")); what != "" {
			return refuse(CodeSecret, "it looks like a secret is written in line %d (%s): keep the value on the device, and name it", n, what)
		}
	}
	return x.group(ctx, t)
}

// behind is the file that is read in the place of p, with links followed; nil if it is none of what was read.
func (x *reading) behind(p string) *thing {
	for range 40 {
		t := x.things[p]
		if t == nil || t.st.Type != topology.Symlink {
			return t
		}
		p = t.to
	}
	return nil
}

// plainText reports whether s is text that a document can hold and a person can read.
func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool {
		return unicode.IsControl(c) && c != '\t' && c != '\n' && c != '\r' || c == '\ufeff' || c == '\ufffe' || c == '\uffff'
	})
}

// public reports whether everybody on the device may read a file, or what is in a directory: what is above it counts.
func (x *reading) public(ctx context.Context, t *thing) (bool, error) {
	if t.st.Mode&0o004 == 0 {
		return false, nil
	}
	for dir := path.Dir(t.path); dir != "/"; dir = path.Dir(dir) { // whom / is closed to uses no device at all
		enters, known := x.open[dir]
		if !known {
			st, err := x.snap.Look(ctx, dir)
			if err != nil {
				return false, err
			}
			enters = st.Mode&0o001 != 0
			x.open[dir] = enters
		}
		if !enters {
			return false, nil
		}
	}
	return true, nil
}

// directory reads what is in a directory.
func (x *reading) directory(ctx context.Context, t *thing) error {
	names, more, err := x.snap.Entries(ctx, t.path, x.limits.Things)
	if err != nil {
		return x.unread(t.path, t.from, err)
	}
	if x.listed += len(names) + more; x.listed > x.limits.Things {
		return x.full(Finding{t.path, t.from, CodeTooMany, fmt.Sprintf("with it there are more than %d files, directories and links", x.limits.Things)})
	}
	for _, name := range names {
		if err := x.want(ctx, path.Join(t.path, name), t.from, swept); err != nil {
			return err
		}
	}
	return nil
}

// link reads where a link leads to.
func (x *reading) link(ctx context.Context, t *thing) error {
	to := cmp.Or(strings.TrimSuffix(t.st.Target, "/"), "/")
	if !path.IsAbs(to) {
		if below := strings.TrimLeft(to, "./"); strings.Contains("/"+below+"/", "/../") {
			return x.refuse(Finding{t.path, t.from, CodeUnclear, fmt.Sprintf("it leads to %q, and a name before a \"..\" may be a link itself", t.st.Target)})
		}
		to = path.Join(path.Dir(t.path), to)
	}
	if path.Clean(to) != to || !plainText(to) {
		return x.refuse(Finding{t.path, t.from, CodeUnclear, fmt.Sprintf("it leads to %q, which is no clean path", t.st.Target)})
	}
	t.to = to
	if err := x.want(ctx, to, t.path, needed); err != nil {
		return err
	}
	return x.group(ctx, t) // of a unit that is linked
}

// mustBeThere wants what the system brings.
func (x *reading) mustBeThere(ctx context.Context, p, from string, by how) error {
	if by == optional || p == "/dev/null" {
		return nil
	}
	if !strings.HasPrefix(p, "/usr/") && !strings.HasPrefix(p, "/dev/") {
		if st, err := x.snap.Look(ctx, "/"+strings.SplitN(p, "/", 3)[1]); err == nil && st.Type == topology.Symlink {
			p = "/usr" + p // /bin, /lib and /sbin are links there
		}
	}
	st, err := x.snap.Look(ctx, p)
	if err != nil && topology.FaultOf(err).Code == topology.CodeSymlink {
		return nil // by an alternative of the system
	}
	if err != nil {
		return x.unread(p, from, err)
	}
	if st.Type == topology.Absent {
		return x.refuse(Finding{p, from, CodeMissing, "it is not there"})
	}
	return nil
}

// systems reports whether a path is of what the system brings to every device, and no part of a configuration.
func systems(p string) bool {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/dev"} {
		if strings.HasPrefix(p, dir+"/") {
			return score.ClassOfPath(p) == score.PathUnsupported
		}
	}
	return false
}

// classWords are the classes that are not exported.
var classWords = map[score.PathClass]string{
	score.PathSecret: "where keys or passwords are", score.PathRuntime: "what a program writes while it runs", score.PathBackup: "a copy that was left behind",
	score.PathCache: "a cache", score.PathUnsupported: "the kernel's, a package's or that of accounts", score.PathUnknown: "of no known class",
}

// agents says that a path is for no score to claim; empty: it may be.
func agents(p string) string {
	r := score.NewReport()
	score.File{Path: p, Content: "x", Mode: 0o644}.Check(r)
	for _, problem := range r.Problems() {
		if problem.Path == "/path" && problem.Severity == score.Error {
			return problem.Text
		}
	}
	return ""
}

func fileResource(p string) score.Resource { return score.Resource("file:" + p) }
