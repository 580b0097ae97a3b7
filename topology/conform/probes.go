package conform

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A ProbeBench is a prober to test.
type ProbeBench struct {
	Probes topology.Prober
	// Dir is an empty directory for this case alone.
	Dir   string
	Hands ProbeHands
}

// ProbeHands are the others whom a prober looks at. Addresses are host:port.
type ProbeHands interface {
	// Serve listens and answers every request with a status and, if location is given,
	// with where to go instead. The scheme is http, or https with a certificate that
	// nobody trusts.
	Serve(scheme string, status int, location string) (address string, err error)
	// Mute takes connections and never says a word.
	Mute() (address string, err error)
	// Nobody returns an address where nobody listens.
	Nobody() (address string, err error)
	// Asked is how often somebody came to an address, whatever for.
	Asked(address string) (int, error)

	Put(path, content string, mode uint32) error
	Symlink(target, path string) error
	Directory(path string) error
	Pipe(path string) error
	// SetModified makes the content of a file as old as if it had been written then.
	SetModified(path string, at time.Time) error
}

func (b ProbeBench) path(name string) string { return path.Join(b.Dir, name) }

// soon is a context for a look that is to end by its deadline.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func had[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		hands(t, err)
		return v
	}
}

// Probes is the suite of a prober.
func Probes(t *testing.T, bench func(*testing.T) ProbeBench) { suite(t, bench, probeTests) }

var probeTests = []test[ProbeBench]{
	{"connection (H63)", func(t *testing.T, b ProbeBench) {
		for _, address := range []string{had[string](t)(b.Hands.Serve("http", 200, "")), had[string](t)(b.Hands.Mute())} {
			ok(t, b.Probes.Connect(t.Context(), address))
		}
		nobody := had[string](t)(b.Hands.Nobody())
		fails(t, b.Probes.Connect(t.Context(), nobody), topology.CodeRefused)
		_, err := b.Probes.Get(t.Context(), "http://"+nobody+"/")
		fails(t, err, topology.CodeRefused)
	}},
	{"status (H63)", func(t *testing.T, b ProbeBench) {
		for _, scheme := range []string{"http", "https"} {
			for _, want := range []int{200, 204, 404, 503} {
				address := had[string](t)(b.Hands.Serve(scheme, want, ""))
				got, err := b.Probes.Get(t.Context(), scheme+"://"+address+"/healthz?deep=1")
				ok(t, err)
				equal(t, "status", got, want)
			}
		}
	}},
	{"redirect is not followed", func(t *testing.T, b ProbeBench) {
		there := had[string](t)(b.Hands.Serve("http", 200, ""))
		here := had[string](t)(b.Hands.Serve("http", 302, "http://"+there+"/"))
		got, err := b.Probes.Get(t.Context(), "http://"+here+"/")
		ok(t, err)
		equal(t, "status", got, 302)
		equal(t, "visits of the one", had[int](t)(b.Hands.Asked(here)), 1)
		equal(t, "visits of the other", had[int](t)(b.Hands.Asked(there)), 0)
	}},
	{"no answer in time", func(t *testing.T, b ProbeBench) {
		address := had[string](t)(b.Hands.Mute())
		for _, scheme := range []string{"http", "https"} {
			_, err := b.Probes.Get(soon(t), scheme+"://"+address+"/path?key=hush")
			fails(t, err, topology.CodeTimeout)
			if !strings.Contains(err.Error(), address+"/path") || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %q, want the URL without its query", err)
			}
		}
	}},
	{"no address, no URL", func(t *testing.T, b ProbeBench) {
		for _, address := range []string{"", "localhost", "localhost:", ":80", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:http", "[::1:80", "unix:/run/x.sock"} {
			fails(t, b.Probes.Connect(t.Context(), address), topology.CodeInvalid)
		}
		for _, url := range []string{"", "/healthz", "localhost/healthz", "http:///healthz", "file:///etc/passwd", "ftp://127.0.0.1/", "http://127.0.0.1:port/", "http://127.0.0.1:0/", "http://[::1]:65536/", "http://\x7f/"} {
			_, err := b.Probes.Get(t.Context(), url)
			fails(t, err, topology.CodeInvalid)
		}
	}},
	{"credentials are not sent", func(t *testing.T, b ProbeBench) {
		address := had[string](t)(b.Hands.Serve("http", 200, ""))
		_, err := b.Probes.Get(t.Context(), "http://admin:hush@"+address+"/")
		fails(t, err, topology.CodeInvalid)
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("%q tells the password", err)
		}
		equal(t, "visits", had[int](t)(b.Hands.Asked(address)), 0)
	}},
	{"time of a file (H63)", func(t *testing.T, b ProbeBench) {
		p := b.path("beat")
		got, err := b.Probes.Modified(t.Context(), p)
		ok(t, err)
		equal(t, "absent file, written", got, time.Time{})
		hands(t, b.Hands.Put(p, "1", 0o600))
		for _, want := range []time.Time{time.Unix(1000000000, 0), time.Unix(4000000000, 0)} {
			hands(t, b.Hands.SetModified(p, want))
			got, err = b.Probes.Modified(t.Context(), p)
			ok(t, err)
			equal(t, "written", got.Unix(), want.Unix())
		}
		hands(t, b.Hands.Put(p, "2", 0o600))
		now, err := b.Probes.Modified(t.Context(), p)
		ok(t, err)
		equal(t, "written again, later", now.After(time.Unix(1000000000, 0)) && now.Before(got), true)
	}},
	{"what is no file has no time", func(t *testing.T, b ProbeBench) {
		hands(t, b.Hands.Put(b.path("f"), "", 0o644))
		hands(t, b.Hands.Symlink(b.path("f"), b.path("link")))
		hands(t, b.Hands.Directory(b.path("dir")))
		hands(t, b.Hands.Pipe(b.path("pipe")))
		hands(t, b.Hands.Symlink(b.path("dir"), b.path("way")))
		for name, code := range map[string]topology.Code{
			"link": topology.CodeSymlink, "way/f": topology.CodeSymlink, "dir": topology.CodeNotRegular,
			"pipe": topology.CodeNotRegular, "f/../f": topology.CodeInvalid,
		} {
			_, err := b.Probes.Modified(t.Context(), b.Dir+"/"+name)
			fails(t, err, code)
		}
	}},
	{"canceled", func(t *testing.T, b ProbeBench) {
		address := had[string](t)(b.Hands.Mute())
		fails(t, b.Probes.Connect(canceled(t), address), topology.CodeCanceled)
		_, err := b.Probes.Get(canceled(t), "http://"+address+"/")
		fails(t, err, topology.CodeCanceled)
		_, err = b.Probes.Modified(canceled(t), b.path("f"))
		fails(t, err, topology.CodeCanceled)
	}},
}
