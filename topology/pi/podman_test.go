package pi

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// fakePodman answers as podman's REST service does, or does not.
func fakePodman(t *testing.T, limit time.Duration, answer http.HandlerFunc) *podman {
	t.Helper()
	p := newPodman(nil, t.TempDir()+"/podman.sock", limit)
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return p
}

func TestHangingPodman(t *testing.T) { // case 82
	p := fakePodman(t, 20*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/containers/stuck/") {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"Id":"0123456789ab","Name":"/good","State":{"Status":"running","Running":true}}`)
	})
	if _, err := p.inspect(t.Context(), "good"); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 100 {
		_, err := p.inspect(t.Context(), "stuck")
		wantCode(t, err, topology.CodeTimeout, "stuck", "no answer")
	}
	p.limit = 10 * time.Second
	if c, err := p.inspect(t.Context(), "good"); err != nil || c == nil || c.State.Status != "running" {
		t.Errorf("the other container: %+v, %v", c, err)
	}
	for began := time.Now(); runtime.NumGoroutine() > before+8; runtime.Gosched() {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestAllContainers(t *testing.T) { // X92
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("all") != "1" || !strings.HasSuffix(r.URL.Path, "/containers/json") {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, `[{"Id":"2","Names":["/web"],"Labels":{"`+ownerLabel+`":"m/web"},"State":"running"},
			{"Id":"1","Names":["/theirs"],"Labels":null,"State":"exited"},{"Id":"0","Names":[]}]`)
	})
	got, err := p.list(t.Context())
	want := []topology.NamedContainer{{Name: "0"}, {Name: "theirs"}, {Name: "web", Mark: "m/web"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPodmanWords(t *testing.T) { // cases 80, 94
	var status int
	var body string
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	tests := []struct {
		name   string
		status int
		body   string
		want   topology.Code // "": no fault
	}{
		{"absent", 404, `{"message":"no such container"}`, ""},
		{"another, whose id begins so", 200, `{"Id":"web1","Name":"/db"}`, ""},
		{"no words", 500, ``, topology.CodeUnknown},
		{"a page", 502, `<html>`, topology.CodeUnknown},
		{"layer", 500, `{"message":"layer not known"}`, topology.CodeImageStore},
		{"link", 500, `{"message":"readlink /var/lib/containers/storage/overlay/l/ABC: invalid argument"}`, topology.CodeImageStore},
		{"full", 500, `{"message":"creating container storage: write /var/x: no space left on device"}`, topology.CodeNoSpace},
		{"read-only", 500, `{"message":"open /var/x: read-only file system"}`, topology.CodeReadOnly},
		{"other", 500, `{"message":"something else"}`, topology.CodeUnknown},
		{"gone meanwhile", 500, `{"cause":"no such container","message":"no container with ID ba8c found in database: no such container","response":500}`, ""},
		{"nonsense", 200, `<html>`, topology.CodeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body = tt.status, tt.body
			_, err := p.inspect(t.Context(), "web")
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantCode(t, err, tt.want, "cannot inspect container web")
		})
	}
	for _, tt := range []struct {
		status int
		body   string
	}{
		{500, `{"cause":"no such host","message":"initializing source docker://r/x:1: pinging container registry r: dial tcp: lookup r: no such host","response":500}`},
		{200, `{"status":"Pulling fs layer","progressDetail":{},"id":"1"}` + "\n" + `{"errorDetail":{"message":"lookup r: no such host"},"error":"lookup r: no such host"}`},
		{200, `{"error":"lookup r: no such host"}`},
	} {
		status, body = tt.status, tt.body
		err := p.pull(t.Context(), topology.ImageRequest{Image: "r.example.org/x:1"})
		wantCode(t, err, topology.CodeImage, "cannot fetch r.example.org/x:1", "no such host")
	}
	status, body = 200, `{"status":"Pulling`
	err := p.pull(t.Context(), topology.ImageRequest{Image: "r.example.org/x:1"})
	wantCode(t, err, topology.CodeImage, "makes no sense")
}

// What is asked of podman when an image is fetched: one reference, by its digest if it has one, with encryption unless
// the device says otherwise of that registry.
func TestPullNames(t *testing.T) {
	var asked string
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
		if asked == "" {
			asked = r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("reference") + " " + r.URL.Query().Get("tlsVerify")
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	p.plaintext = []string{"r.example.org:5001"}
	for image, want := range map[string]string{
		"r.example.org/a/b:2":              "r.example.org/a/b:2 true",
		"r.example.org:5000/a:1":           "r.example.org:5000/a:1 true",
		"r.example.org:5001/a:1":           "r.example.org:5001/a:1 false",
		"r.example.org:5000/a@sha256:ab":   "r.example.org:5000/a@sha256:ab true",
		"r.example.org:5000/a:1@sha256:ab": "r.example.org:5000/a@sha256:ab true",
	} {
		asked = ""
		err := p.pull(t.Context(), topology.ImageRequest{Image: image})
		wantCode(t, err, topology.CodeImage, image)
		if asked != "POST /v4.0.0/libpod/images/pull "+want {
			t.Errorf("%s: asked for %s", image, asked)
		}
	}
}

// Releases of podman do not agree on the form of all fields. Those that are read are the same in all, and the
// others are not looked at.
func TestInspectOfManyPodmen(t *testing.T) { // case 72
	files, err := filepath.Glob("testdata/inspect/*.json")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
			found, err := p.inspect(t.Context(), "web")
			if err != nil || found == nil {
				t.Fatal(found, err)
			}
			st := (&looked{found: found}).state(unitState{})
			if st.State != "running" || st.Mark != "kiosk/web" || st.Image != "localhost/busybox:1" || found.Image == "" ||
				st.ID != strings.Repeat("0123456789abcdef", 4) || !st.Since.Equal(time.Date(2026, 11, 29, 9, 0, 0, 123456789, time.UTC)) {
				t.Errorf("%+v", st)
			}
			if want := map[bool]string{true: "healthy"}[strings.Contains(file, "health") || strings.Contains(file, "-all")]; st.Health != want {
				t.Errorf("health is %q, want %q", st.Health, want)
			}
		})
	}
}

// What a container was created with is read from every release, in every form, and compared with what was asked for: of
// each part, alone (G49, 69, 72).
func TestCreatedByManyPodmen(t *testing.T) {
	made := func() topology.ContainerConfig {
		return topology.ContainerConfig{
			Image: "localhost/busybox:1", Entrypoint: []string{"/bin/sh", "-c", `trap "exit 0" TERM; sleep 1d & wait`, "a b"}, Command: []string{"x y", ""},
			User: "1000:1000", WorkingDir: "/tmp", Env: []string{"A=1", "B=two words"}, ReadOnly: true,
			Hostname: "web-1", Memory: 1 << 30, PIDs: 100, CPU: 50, CapAdd: []string{"KILL"}, // not compared
		}
	}
	files, err := filepath.Glob("testdata/inspect/*-all.json")
	if err != nil || len(files) != 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := new(inspected)
			if err := into(found)(bytes.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			for want, edit := range map[string]func(*topology.ContainerConfig){
				"": func(c *topology.ContainerConfig) {},
				" of the image": func(c *topology.ContainerConfig) {
					*c = topology.ContainerConfig{Image: c.Image, ReadOnly: true}
				},
				"entrypoint": func(c *topology.ContainerConfig) { c.Entrypoint = append(c.Entrypoint, "more") },
				"command":    func(c *topology.ContainerConfig) { c.Command = []string{"x", "y", ""} },
				"env":        func(c *topology.ContainerConfig) { c.Env = []string{"A=2"} },
				"user":       func(c *topology.ContainerConfig) { c.User = "0" },
				"workingDir": func(c *topology.ContainerConfig) { c.WorkingDir = "/" },
				"readOnly":   func(c *topology.ContainerConfig) { c.ReadOnly = false },
			} {
				c := made()
				edit(&c)
				if want[:min(1, len(want))] == " " {
					want = ""
				}
				if got := strings.Join(found.departs(&c), " "); got != want {
					t.Errorf("departs in %q, want %q", got, want)
				}
			}
		})
	}
}

// Whatever podman answers, it is a container, none, or a fault.
func FuzzInspect(f *testing.F) {
	for _, s := range []string{`{"Id":"1","Name":"/web","State":{"Status":"running","Health":{"Status":"none"}}}`, `{"Config":null}`, `[]`, `{"Id":1}`, ``, `{"Config":{"Entrypoint":"a b","Cmd":null,"Env":["A=1"]}}`, `{"Config":{"Entrypoint":["a"]},"HostConfig":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found := new(inspected)
		if err := into(found)(bytes.NewReader(text)); err == nil {
			(&looked{found: found}).state(unitState{})
			found.departs(&topology.ContainerConfig{Image: "a", Entrypoint: []string{"a", "b"}, Command: []string{"c"}, Env: []string{"A=1"}, User: "u", WorkingDir: "/w"})
		}
	})
}
