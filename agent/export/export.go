package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Limits bound one reading.
type Limits struct {
	File   int64 // bytes of one file
	Things int   // files, directories and links
	Total  int64 // bytes of all files
}

// DefaultLimits are those of a Reader that has none.
var DefaultLimits = Limits{File: 1 << 20, Things: 4096, Total: 16 << 20}

// An Owner is the score that the books name for a resource.
type Owner struct {
	Manifest, Score string
	Provenance      string // created or adopted
	Applied         score.Score
}

// A Reader reads a device. What is nil is not there: no service manager, no books, no ceiling.
type Reader struct {
	Files    topology.Snapshots
	Services topology.ServiceReader
	// Teller tells of contents in an inventory.
	Teller interpret.Teller
	// Owner is who owns a resource, by the books.
	Owner func(score.Resource) (Owner, bool)
	// AsApplied reports whether what a score made is there as it was applied last, and why not.
	AsApplied func(context.Context, Owner) (why string, is bool)
	// Refuses reports whether the owner of the device lets nobody adopt what a score says, and why.
	Refuses func(score.Score) (why string, refused bool)
	Limits  Limits
}

// A Result is what was read.
type Result struct {
	// Manifest says exactly what is there.
	Manifest score.Manifest
	// Left is what was found and is no part of it: copies, caches, what programs write while they run, credentials and
	// data that stay where they are. Not all if it is much.
	Left []Finding
}

// tries is how often everything is read again if something changes meanwhile.
const tries = 3

// Export reads files, directories, links, units and containers with what they refer to: an absolute path, the name of a
// unit, container:NAME, or these as a resource, file:PATH and unit:NAME. The manifest is named and aimed as asked. What
// refuses it is a *Refusal; any other error is that the device could not be asked.
func (r *Reader) Export(ctx context.Context, name, device string, wanted []string) (Result, error) {
	var last error
	for range tries {
		out, err := r.export(ctx, name, device, wanted)
		if last = err; err == nil || topology.FaultOf(err).Code != topology.CodeChanged {
			return out, err
		}
	}
	return Result{}, &Refusal{[]Finding{{Path: strings.Join(wanted, " "), Code: CodeChanged, Why: fmt.Sprintf("it was read %d times, and each time: %v", tries, last)}}}
}

func (r *Reader) export(ctx context.Context, name, device string, wanted []string) (Result, error) {
	x := r.begin()
	for _, w := range wanted {
		x.asked[strings.TrimPrefix(w, "file:")] = true
	}
	for _, w := range wanted {
		if err := x.select1(ctx, w); err != nil {
			return Result{}, x.end(err)
		}
	}
	if err := x.close(ctx); err != nil {
		return Result{}, x.end(err)
	}
	scores, err := x.scores(ctx)
	if err == nil {
		err = x.snap.Settle(ctx) // before anything is said, also of what refuses it
	}
	if err != nil {
		return Result{}, x.end(err)
	}
	m := score.Manifest{
		APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: name},
		Spec: score.ManifestSpec{Target: score.Target{Device: device}, Scores: scores},
	}
	x.validate(m)
	if len(x.refused) > 0 {
		return Result{}, &Refusal{x.refused}
	}
	return Result{m, x.left}, nil
}

// A reading is one attempt to read everything.
type reading struct {
	*Reader
	limits  Limits
	snap    topology.Snapshot
	asked   map[string]bool // by name
	things  map[string]*thing
	listed  int                // entries of directories
	total   int64              // bytes
	open    map[string]bool    // directories that everybody may look into
	groups  map[string]*group  // of unit and Quadlet files, by the path of the main one
	units   map[string]*wished // units that were named
	brought []brought          // containers of manifests
	covered map[string]bool    // paths that a score of another kind says
	refused []Finding
	left    []Finding
	by      map[int]string // numbers of scores, and what they are about
}

// A thing is one file, directory or link that is exported.
type thing struct {
	path string
	from string // what refers to it; empty: it was asked for
	st   topology.FileState
	text string
	to   string // where a link leads to
}

func (r *Reader) begin() *reading {
	limits := r.Limits
	if limits == (Limits{}) {
		limits = DefaultLimits
	}
	return &reading{
		Reader: r, limits: limits, snap: r.Files.Snapshot(), asked: map[string]bool{}, things: map[string]*thing{}, open: map[string]bool{},
		groups: map[string]*group{}, covered: map[string]bool{}, units: map[string]*wished{}, by: map[int]string{},
	}
}

// errFull ends a reading that is beyond a limit, or has found enough. What was found says why.
var errFull = errors.New("enough was found")

// end is how a reading ends early.
func (x *reading) end(err error) error {
	if errors.Is(err, errFull) {
		return &Refusal{x.refused}
	}
	return err
}

func (x *reading) refuse(f Finding) error {
	if !slices.Contains(x.refused, f) {
		x.refused = append(x.refused, f)
	}
	if len(x.refused) >= maxFindings {
		return errFull
	}
	return nil
}

func (x *reading) leave(f Finding) {
	if len(x.left) < maxFindings && !slices.Contains(x.left, f) {
		x.left = append(x.left, f)
	}
}

// select1 reads one thing that was asked for.
func (x *reading) select1(ctx context.Context, wanted string) error {
	kind, name, _ := strings.Cut(wanted, ":")
	switch {
	case strings.HasPrefix(wanted, "/"):
		return x.want(ctx, wanted, "", named)
	case kind == "file":
		return x.want(ctx, name, "", named)
	case kind == "container":
		return x.container(ctx, name)
	case kind == "unit":
		return x.unit(ctx, name)
	}
	return x.unit(ctx, wanted)
}

// owner is who owns a resource.
func (x *reading) owner(res score.Resource) (Owner, bool) {
	if x.Owner == nil {
		return Owner{}, false
	}
	return x.Owner(res)
}

// validate finds what the language does not let be said, secrets that are written down among it.
func (x *reading) validate(m score.Manifest) {
	for i, s := range m.Spec.Scores {
		if why, refused := x.refuses(s); refused {
			_ = x.refuse(Finding{Path: x.by[i], Code: CodeNotAllowed, Why: why})
		}
	}
	if len(m.Spec.Scores) == 0 && len(x.refused) == 0 {
		_ = x.refuse(Finding{Path: "-", Code: CodeMissing, Why: "there is nothing to export in what was named"})
		return
	}
	for _, p := range m.Validate() {
		if p.Severity != score.Error || len(x.refused) >= maxFindings {
			continue
		}
		f := Finding{Path: p.Path, Code: CodeUnsaid, Why: p.Text}
		var i int
		if n, _ := fmt.Sscanf(p.Path, "/spec/scores/%d", &i); n == 1 {
			f.Path = cmp.Or(x.by[i], f.Path)
		}
		if !slices.ContainsFunc(x.refused, func(o Finding) bool { return o.Path == f.Path }) {
			_ = x.refuse(f)
		}
	}
}

func (x *reading) refuses(s score.Score) (string, bool) {
	if x.Refuses == nil {
		return "", false
	}
	return x.Refuses(s)
}
