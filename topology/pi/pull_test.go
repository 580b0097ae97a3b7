package pi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func TestPullProgress(t *testing.T) {
	var got []topology.Progress
	err := pulled(strings.NewReader(`{"status":"Pulling fs layer","progressDetail":{},"id":"a"}
{"status":"Downloading","progressDetail":{"current":10,"total":100},"id":"a"}
{"status":"Downloading","progressDetail":{"current":5,"total":50},"id":"b"}

{"status":"Downloading","progressDetail":{"current":60,"total":100},"id":"a"}
{"status":"Download complete","progressDetail":{},"id":"b"}
`), func(p topology.Progress) { got = append(got, p) })
	if want := "[{10 100} {15 150} {65 150}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	if err := pulled(strings.NewReader(`{"status":"`+strings.Repeat("x", maxPullLine)+`"}`), func(topology.Progress) {}); err == nil {
		t.Error("a line without an end was read")
	}
}

// A password goes to podman in a header, for this one request, and is in no text about what came of it.
func TestPullPassword(t *testing.T) { // G58
	const canary = "c4n4ry"
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
		header, err := base64.URLEncoding.DecodeString(r.Header.Get("X-Registry-Auth"))
		var auth struct{ Username, Password string }
		if err == nil {
			err = json.Unmarshal(header, &auth)
		}
		if err != nil || auth.Username != "pi" || auth.Password != canary || strings.Contains(r.URL.String(), canary) {
			t.Errorf("asked with %q (%v) at %s", header, err, r.URL)
		}
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"message":"unauthorized"}`)
	})
	err := p.pull(t.Context(), topology.ImageRequest{Image: "r.example.org/x:1", Username: "pi", Password: []byte(canary)})
	wantCode(t, err, topology.CodeImage, "r.example.org/x:1", "unauthorized")
	if strings.Contains(err.Error(), canary) {
		t.Errorf("the text has the password: %v", err)
	}
}

// What could help is said where podman's words do not say it.
func TestPullHints(t *testing.T) {
	var words string
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": words})
	})
	for said, hint := range map[string]string{
		"http: server gave HTTP response to HTTPS client":                  "registries.plaintext",
		"unable to retrieve auth token: invalid username: unauthorized: x": "under registry",
	} {
		words = said
		wantCode(t, p.pull(t.Context(), topology.ImageRequest{Image: "r.example.org/x:1"}), topology.CodeImage, said, hint)
	}
}

func TestOursIsWhatWeNamed(t *testing.T) {
	kept := keptName("r.example.org/x:1", "1234")
	tests := []struct {
		name string
		tags []string
		want bool
	}{
		{"fetched", []string{"r.example.org/x:1", kept}, true},
		{"fetched, and another came in its place", []string{kept}, true},
		{"newest of its reference", []string{kept, newestName("r.example.org/x:1")}, true},
		{"here before", []string{"r.example.org/x:1", newestName("r.example.org/x:1")}, false},
		{"by hand", []string{"r.example.org/x:1"}, false},
		{"without a name", nil, false},
		{"named by hand as well", []string{"r.example.org/x:1", kept, "localhost/mine:1"}, false},
		{"fetched by hand under another name as well", []string{"r.example.org/x:1", "r.example.org/x:2", kept}, false},
		{"our name on another image", []string{keptName("r.example.org/x:1", "5678")}, false},
	}
	for _, tt := range tests {
		if got := (imageSummary{ID: "1234", RepoTags: tt.tags}).ours(); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

// TestOneImageOfTwoReferences: what was fetched for one reference, and is what another stands for, is ours under both
// names and can be collected when nobody wants either; what somebody else had here is not.
func TestOneImageOfTwoReferences(t *testing.T) {
	const first, second, id = "r.example.org/x:1", "r.example.org/x:2", "1234"
	for _, ours := range []bool{true, false} {
		tags, root := []string{first}, t.TempDir()
		if ours {
			tags = append(tags, keptName(first, id))
		}
		p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/images/json"):
				_ = json.NewEncoder(w).Encode([]map[string]any{{"Id": "sha256:" + id, "RepoTags": tags}})
			case strings.HasSuffix(r.URL.Path, "/images/pull"):
				tags = append(tags, second)
			case strings.HasSuffix(r.URL.Path, "/tag"):
				tags = append(tags, r.URL.Query().Get("repo")+":"+r.URL.Query().Get("tag"))
			case strings.HasSuffix(r.URL.Path, "/info"):
				_ = json.NewEncoder(w).Encode(map[string]string{"DockerRootDir": root})
			default:
				fmt.Fprintf(w, `{"Id":"sha256:%s","RepoDigests":[]}`, id)
			}
		})
		if _, err := p.fetch(t.Context(), topology.ImageRequest{Image: second}, nil); err != nil {
			t.Fatal(err)
		}
		if got := (imageSummary{ID: id, RepoTags: tags}).ours(); got != ours {
			t.Errorf("ours is %v, want %v: %v", got, ours, tags)
		}
	}
}

// Whatever podman tells about a pull, the progress is one that can be.
func FuzzPulled(f *testing.F) {
	f.Add([]byte(`{"status":"Downloading","progressDetail":{"current":10,"total":100},"id":"a"}` + "\n" + `{"error":"x"}`))
	f.Add([]byte(`{"progressDetail":{"current":-1,"total":9223372036854775807}}`))
	f.Add([]byte("\n\n[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = pulled(bytes.NewReader(text), func(p topology.Progress) {
			if p.Done < 0 || p.Done > p.Total {
				t.Fatalf("%+v", p)
			}
		})
	})
}

func TestStorageIsChecked(t *testing.T) { // case 94
	var status int
	var answer string
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v4.0.0/libpod/system/check" || r.URL.RawQuery != "quick=true" {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	})
	for _, tt := range []struct {
		status       int
		answer, want string
	}{
		{200, `{"Errors":false,"Layers":null,"Images":null,"Containers":null}`, "finds nothing"},
		{200, `{"Errors":true,"Layers":{"a":["x"],"b":["y"]},"Images":{"c":["z"]},"Containers":null}`, "names 2 layers, 1 images and 0 containers"},
		{200, `{"Errors":true}`, "does not say where"},
		{404, `{"message":"no such endpoint"}`, "cannot check its storage"},
	} {
		status, answer = tt.status, tt.answer
		if got := p.check(t.Context()); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q", tt.answer, got)
		}
	}
}
