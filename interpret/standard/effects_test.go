package standard_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

// others has, for each field of each kind, values to change the sample to.
var others = map[string][]func(reflect.Value){
	"file.path":              {set("/etc/other")},
	"file.content":           {set(""), set("other\n")},
	"file.mode":              {set(score.Mode(0o600)), set(score.Mode(0o4755))},
	"file.owner":             {set(""), set("33")},
	"file.group":             {set(""), set("33")},
	"job.name":               {set("other")},
	"job.unit":               {set(&score.JobUnit{Exec: []string{"/usr/bin/other"}})},
	"job.container":          {set(&score.JobContainer{Image: "a.b/c:1"})},
	"job.timeout":            {set(score.Duration(9e9))},
	"job.retries":            {set(0)},
	"job.success":            {set([]int{3, 0})},
	"tool.name":              {set("other")},
	"tool.version":           {set(score.VersionRange(">= 9"))},
	"tool.path":              {set("/usr/local/bin/python3")},
	"hostname.name":          {set("other")},
	"service.unit":           {set("other.service")},
	"service.unitFile":       {set(""), set("[Service]\nExecStart=/usr/bin/other\n[Install]\nWantedBy=multi-user.target\n")},
	"service.enabled":        {set((*bool)(nil)), set(new(false))},
	"service.state":          {set(score.RunState("")), set(score.Stopped)},
	"container.name":         {set("other")},
	"container.image":        {set("registry.example.org/web:1.5")},
	"container.command":      {set([]string(nil)), set([]string{"serve"})},
	"container.env":          {set(map[string]score.Value(nil)), set(map[string]score.Value{"TZ": score.Text("CET")})},
	"container.state":        {set(score.Stopped)},
	"container.entrypoint":   {set([]string{"/e"})},
	"container.user":         {set("1000")},
	"container.workingDir":   {set("/srv")},
	"container.hostname":     {set("web")},
	"container.secrets":      {set([]score.SecretFile{{Secret: "tls", Target: "/tls"}})},
	"container.tmpfs":        {set([]score.Tmpfs{{Target: "/cache"}})},
	"container.devices":      {set([]score.Device{{Host: "/dev/null", Container: "/dev/null"}})},
	"container.capabilities": {set(&score.KernelCapabilities{Add: []string{"NET_ADMIN"}})},
	"container.readOnly":     {set(true)},
	"container.network":      {set("host")},
	"container.limits":       {set(&score.ContainerLimits{Memory: 64 << 20})},
	"container.healthCheck":  {set(&score.HealthCheck{Command: []string{"/check"}})},
	"container.log":          {set(&score.ContainerLog{Driver: score.LogNone})},
	"container.labels":       {set(map[string]string{"a": "b"})},
	"container.stopSignal":   {set(score.Signal("INT"))},
	"container.stopTimeout":  {set(score.Duration(30e9))},
	"container.init":         {set([]score.InitContainer(nil)), set([]score.InitContainer{{Name: "one"}})},
	"container.reloadOn":     {set([]score.ID{"conf"})},
	"container.reloadSignal": {set(score.Signal("USR1"))},
	"container.pull":         {set(score.PullAlways)},
	"container.registry":     {set(&score.Registry{Username: "pi", Password: score.SecretRef{Secret: "token"}})},
	"container.ports":        {set([]score.Port(nil)), set([]score.Port{{Host: 8081, Container: 80}})},
	"container.volumes":      {set([]score.Volume(nil)), set([]score.Volume{{Source: "/srv/other", Target: "/data"}})},
	"container.restart":      {set(score.Restart("")), set(score.RestartNever)},
	"service.restartOn":      {set([]score.ID{"conf"})},
	"service.reloadOn":       {set([]score.ID{"conf"})},
	"service.user":           {set("pi")},
	"service.linger":         {set(new(true))},
	"service.dropIns":        {set(map[string]string{"10-env": "[Service]\nEnvironment=A=b\n"})},
	"service.limits":         {set(&score.Limits{Tasks: 10}), set(&score.Limits{Memory: 256 << 20, CPU: 50, IOWeight: 10})},
	"service.masked":         {set(new(true))},
	"service.run":            {set(score.RunOnce)},
	"service.log":            {set(score.NoLog)},
	"container.restartOn":    {set([]score.ID{"conf"})},
	"file.state":             {set(score.Absent)},
	"file.template":          {set(&score.Template{Text: "other\n"})},
	"file.blob":              {set(&score.BlobRef{SHA256: strings.Repeat("0", 64), Size: 6})},
	"directory.path":         {set("/srv/other")},
	"directory.state":        {set(score.Absent)},
	"directory.mode":         {set(score.Mode(0o700)), set(score.Mode(0o2775))},
	"directory.owner":        {set(""), set("33")},
	"directory.group":        {set(""), set("33")},
	"symlink.path":           {set("/etc/other")},
	"symlink.state":          {set(score.Absent)},
	"symlink.target":         {set("/usr/share/zoneinfo/UTC")},
	"hosts.entries":          {set([]score.HostEntry{{Address: "192.0.2.11", Names: []string{"broker"}}})},
}

// quiet has the fields that change nothing by themselves: they say how something is compared, and what becomes
// of a difference that is there for another reason. The effect that is declared is that of such a difference.
var quiet = map[string][]func(reflect.Value){
	"file.contentFrom":    {}, // no device gets it: see TestContentFromIsForAuthors
	"file.attributesOnly": {set(true)},
	"file.create":         {set(score.CreateOnce), set(score.CreateAlways)},
	"file.normalize":      {set([]score.Normalization{score.NormalizeCRLF})},
	"directory.exclusive": {set(true)},
	"directory.entries":   {set([]string{"a"})},
}

func set[T any](to T) func(reflect.Value) {
	return func(v reflect.Value) { v.Set(reflect.ValueOf(to)) }
}

// TestSchemaEffects: what the schema says that changing a field does is the worst that a plan says of it, for the sample
// as it runs: no less, so that nobody is surprised, and no more, so that it is believed (X106).
func TestSchemaEffects(t *testing.T) {
	var manifest struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Effect interpret.Effect `json:"x-effect"`
			} `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(schemas.Text("manifest"), &manifest); err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, k := range score.Kinds() {
		for f := range k.Type.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			field := string(k.Kind) + "." + name
			declared := manifest.Defs[k.Type.Name()].Properties[name].Effect
			tried[field] = true
			if others, is := quiet[field]; is {
				for _, change := range others {
					if changes := planned(t, k.Sample, f.Index, change); len(changes) > 0 {
						t.Errorf("%s is said to change nothing by itself, and the plan is %v", field, changes)
					}
				}
				if string(declared) != k.Effects[name] || declared != interpret.Mutate {
					t.Errorf("%s: the schema says %q, the kind %q", field, declared, k.Effects[name])
				}
				continue
			}
			if len(others[field]) == 0 {
				t.Errorf("%s: say in others what it can be changed to", field)
			}
			var changes []interpret.Change
			for _, change := range others[field] {
				changes = append(changes, planned(t, k.Sample, f.Index, change)...)
			}
			if declared == interpret.Nothing && len(changes) == 0 && k.Effects[name] == string(declared) {
				continue // it says how a change is made, and is no part of what is compared
			}
			if len(changes) == 0 {
				t.Errorf("%s: no other value makes a difference", field)
			}
			if newRig(t).table.Looks(k.Kind) {
				for _, c := range changes {
					if c.Effect != interpret.Nothing || declared != interpret.Nothing {
						t.Errorf("%s is looked at, and %+v has an effect", field, c)
					}
				}
				continue
			}
			if worst := interpret.Worst(changes); worst != declared || string(declared) != k.Effects[name] {
				t.Errorf("%s: the schema says %q, the kind %q, and the plan %q: %v", field, declared, k.Effects[name], worst, changes)
			}
		}
	}
	for field := range others {
		if !tried[field] {
			t.Errorf("others speaks of %s, which there is not", field)
		}
	}
}

// planned is what would be done to a device that has the sample when one field of it changes.
func planned(t *testing.T, sample score.Spec, field []int, change func(reflect.Value)) []interpret.Change {
	r := newRig(t)
	r.AddUser("", 1001) // whom linger is about, without the field user
	prepare(r, sample)
	if r.table.Looks(sample.Kind()) {
		supply(r, sample)
	} else {
		r.want(r.play(sample), interpret.Changed, "")
	}
	v := reflect.New(reflect.TypeOf(sample)).Elem()
	v.Set(reflect.ValueOf(sample))
	change(v.FieldByIndex(field))
	spec := v.Interface().(score.Spec)
	wish := interpret.Wish{Score: score.Score{ID: "x", Spec: spec}}
	if rs, ok := spec.(score.Restarter); ok && len(rs.RestartTriggers()) > 0 { // as the agent does when one of them has changed
		wish.Restart = &interpret.Change{Field: interpret.FieldRestart, Have: "before conf", Want: "after conf", Effect: interpret.Disrupt}
	}
	if rs, ok := spec.(score.Reloader); ok && len(rs.ReloadTriggers()) > 0 {
		wish.Restart = &interpret.Change{Field: interpret.FieldReload, Have: "before conf", Want: "after conf", Effect: interpret.Mutate}
	}
	st := r.table.Observe(t.Context(), wish)
	changes := slices.Clone(st.Changes)
	if r.table.Looks(sample.Kind()) {
		return changes
	}
	if spec.Claims()[0] != sample.Claims()[0] { // it is another thing now, and the one before is removed
		var g open
		if _, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: sample}, interpret.CauseAbsent, &g); err != nil || len(g.actions) != 1 {
			t.Fatal(g.actions, err)
		}
		changes = append(changes, interpret.Change{Field: "present", Have: "true", Want: "false", Effect: g.actions[0].Effect})
	}
	return changes
}
