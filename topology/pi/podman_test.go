package pi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// fakePodman answers as podman's REST service does, or does not.
func fakePodman(t *testing.T, limit time.Duration, answer http.HandlerFunc) *podman {
	t.Helper()
	p := &podman{socket: t.TempDir() + "/podman.sock", limit: limit}
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			return
		}
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
	t.Cleanup(p.close)
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
	if c, err := p.inspect(t.Context(), "good"); err != nil || c == nil || string(c.State.Status) != "running" {
		t.Errorf("the other container: %+v, %v", c, err)
	}
	for began := time.Now(); runtime.NumGoroutine() > before+8; runtime.Gosched() {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestPodmanWords(t *testing.T) { // cases 72, 80, 94
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
		{"argument with a space", 200, `{"Id":"1","Name":"web","Config":{"Entrypoint":["/e.sh","-x y"]}}`, ""},
		{"layer", 500, `{"message":"layer not known"}`, topology.CodeImageStore},
		{"link", 500, `{"message":"readlink /var/lib/containers/storage/overlay/l/ABC: invalid argument"}`, topology.CodeImageStore},
		{"full", 500, `{"message":"creating container storage: write /var/x: no space left on device"}`, topology.CodeNoSpace},
		{"read-only", 500, `{"message":"open /var/x: read-only file system"}`, topology.CodeReadOnly},
		{"other", 500, `{"message":"something else"}`, topology.CodeUnknown},
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
	status, body = 500, `{"message":"initializing source docker://r/x:1: pinging container registry r: dial tcp: lookup r: no such host"}`
	_, err := p.pull(t.Context(), "r.example.org/x:1")
	wantCode(t, err, topology.CodeImage, "r.example.org/x:1", "no such host")
}
