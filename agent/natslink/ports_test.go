package natslink

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// The transport knows what the agent has to be told and to say, and nothing of how it makes things true: of package
// agent it uses the file of ports (S08).
func TestTransportUsesPortsOnly(t *testing.T) {
	ports := map[string]bool{}
	f := parse(t, "../ports.go")
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					ports[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						ports[n.Name] = true
					}
				}
			}
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		ast.Inspect(parse(t, e.Name()), func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "agent" {
					if seen++; !ports[sel.Sel.Name] {
						t.Errorf("%s uses agent.%s, which is no port", e.Name(), sel.Sel.Name)
					}
				}
			}
			return true
		})
	}
	if seen == 0 || !ports["Link"] {
		t.Errorf("saw %d uses of %v", seen, ports)
	}
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Once a link is made for its device, no call can name another one (S31; that the server allows no other is tested in wire).
func TestNoCallNamesADevice(t *testing.T) {
	link := reflect.TypeFor[*Link]()
	var names []string
	for m := range link.Methods() {
		names = append(names, m.Name)
		// One names a content, by a digest: TestFetch shows that it takes nothing else. The other takes lines, and where they go is
		// not theirs to say.
		if m.Name == "Fetch" || m.Name == "Audit" {
			continue
		}
		for in := range m.Type.Ins() {
			if !slices.Contains([]reflect.Type{link, reflect.TypeFor[context.Context](), reflect.TypeFor[agent.Handler]()}, in) && !slices.Contains([]string{"DeviceStatus", "DeviceInfo", "ApprovalRequests", "Receipt"}, in.Name()) {
				t.Errorf("%s takes a %s", m.Name, in)
			}
		}
	}
	if strings.Join(names, " ") != "Ask Audit Fetch Inform Reach Report Run Send" {
		t.Errorf("the methods of a link are %v", names)
	}
}

// 500 heartbeats of a device to which nothing happens are alike in size, far below their limit, and fetch nothing
// (S11, S12).
func TestHeartbeatsStayLight(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers = []string{p.url()}
	o.tune.heartbeat, o.tune.off = time.Millisecond, onPush
	r.answerWith(r.publish(1))
	_, h, _ := r.run(o)
	h.generation(t, 1)
	size := func(hb wire.Heartbeat) int {
		hb.Uptime = 0 // a number grows when it does
		b, err := hb.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	first := size(r.beats(2))
	before := p.count("get.d.")
	for range 10 {
		if n := size(r.beats(50)); n != first || n > 400 {
			t.Errorf("a heartbeat has %d bytes, the first had %d", n, first)
		}
	}
	if n := p.count("get.d.") - before; n != 0 {
		t.Errorf("%d fetches in 500 heartbeats without news", n)
	}
}
