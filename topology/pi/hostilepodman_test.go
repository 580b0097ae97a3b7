package pi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// Whatever podman answers, to whatever it is asked, ends in an answer of ours or in a fault, and soon.
func FuzzPodmanAnswers(f *testing.F) {
	deep := strings.Repeat(`{"State":`, 9000) + "1" + strings.Repeat("}", 9000)
	for _, s := range []string{
		"", "null", "[]", "{}", "[null]", "7", `"x"`, "\x00", "\xff\xfe", deep, strings.Repeat("[", 20000), `{"Id":7}`, `{"Id":"a","Id":"b","Name":"web"}`,
		`{"Id":"` + strings.Repeat("a", 1<<16) + `","Name":"/web","Config":{"Labels":null,"Env":null,"Entrypoint":7}}`,
		`{"Id":"","Name":"web","Image":"","Config":{"Image":""},"State":{"Health":{"Status":null}}}`,
		`[{"Id":"","Names":null,"Labels":null,"RepoTags":[null,""],"ImageID":""}]`, `[{"Names":[""],"Spec":{"Labels":{"continuo.container":"web"}}}]`,
		`{"name":"web","subnets":[null,{}],"labels":null,"created":"x"}`, `{"error":""}`, `{"progressDetail":{"current":1,"total":1}}` + "\n" + `{"status":"ok"}`,
		`{"message":""}`, `{"Config":{"Healthcheck":{"Test":[]}}}`,
	} {
		f.Add(s, 200)
		f.Add(s, 500)
	}
	answer, status := "", 200
	f.Fuzz(func(t *testing.T, text string, code int) {
		answer, status = text, 200+max(code, -code)%400
		if status < 200 || status > 599 || status == 204 || status == 304 {
			status = 200
		}
		p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
		})
		c := &containers{podman: p, known: map[string]*looked{}}
		ctx := t.Context()
		if found, err := p.inspect(ctx, "web"); err == nil && found != nil {
			l := &looked{found: found}
			_ = c.lookAtImages(ctx, l)
			st := l.state(unitState{})
			_ = found.departs(&topology.ContainerConfig{Entrypoint: []string{"x"}, Command: []string{"y"}, Env: []string{"A=1"}})
			_ = found.isStep()
			if len(st.State) > maxWord || len(st.Health) > maxWord {
				t.Errorf("a state of %d bytes", len(st.State)+len(st.Health))
			}
		}
		_, _ = p.list(ctx)
		_, _ = p.image(ctx, "localhost/web:1")
		_, _ = p.checks(ctx, "localhost/web:1")
		_, _ = p.users(ctx, "1234")
		_, _ = p.secrets(ctx)
		_, _ = p.volume(ctx, "web")
		b, _ := p.bridge(ctx, "web")
		_ = b.state()
		_, _, _ = p.attached(ctx, "web")
		_ = p.pull(ctx, topology.ImageRequest{Image: "localhost/web:1"})
		_ = p.try(ctx, "localhost/web:1")
		_ = p.check(ctx)
		_ = p.removeContainer(ctx, "1234")
		_ = c.giveSecrets(ctx, topology.ContainerConfig{Name: "web", Secrets: []topology.ContainerSecret{{Name: "s", Env: "S", Value: []byte("x")}}})
		_ = c.dropSecrets(ctx, "web", topology.ContainerConfig{})
		_ = c.freeForInit(ctx, topology.ContainerConfig{Init: []topology.InitContainer{{Name: "web"}}})
	})
}

// A pull that says that it went well, and brought nothing, did not go well; one whose line does not end is broken off.
func TestPullThatLies(t *testing.T) {
	endless := false
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/images/json"):
			_, _ = io.WriteString(w, "[]")
		case strings.HasSuffix(r.URL.Path, "/pull") && endless:
			line := []byte(strings.Repeat("x", 1<<16))
			for r.Context().Err() == nil {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		case strings.HasSuffix(r.URL.Path, "/pull"):
			_, _ = io.WriteString(w, `{"status":"Download complete"}`+"\n")
		default:
			http.Error(w, `{"message":"no such image"}`, http.StatusNotFound)
		}
	})
	_, err := p.fetch(t.Context(), topology.ImageRequest{Image: "r.example.org/x:1"}, nil)
	wantCode(t, err, topology.CodeImage, "was fetched and is not here")
	endless = true
	_, err = p.fetch(t.Context(), topology.ImageRequest{Image: "r.example.org/x:1"}, nil)
	wantCode(t, err, topology.CodeImage, "broke off")
}

// TestSecretForAVariable: what cannot be the value of a variable is told before podman is given anything.
func TestSecretForAVariable(t *testing.T) {
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		_, _ = io.WriteString(w, "[]")
	})
	c := &containers{podman: p}
	for name, tt := range map[string]struct {
		value string
		env   string
	}{
		"NUL": {"a\x00b", "A"}, "too long": {strings.Repeat("x", 128<<10), "A"}, "empty": {"", "A"}, "1 MiB as a file": {strings.Repeat("x", 1<<20), ""},
	} {
		err := c.giveSecrets(t.Context(), topology.ContainerConfig{Name: "web", Secrets: []topology.ContainerSecret{{Name: "s", Env: tt.env, Target: "/s", Value: []byte(tt.value)}}})
		if err == nil || topology.FaultOf(err).Code != topology.CodeSecret || strings.Contains(err.Error(), "x\x00") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
