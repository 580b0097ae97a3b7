package trust

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// signer gives the same key for the same letter.
func signer(t testing.TB, letter byte) nkeys.KeyPair {
	t.Helper()
	kp, err := nkeys.FromRawSeed(nkeys.PrefixByteAccount, bytes.Repeat([]byte{letter}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return kp
}

func public(t testing.TB, letter byte) string {
	t.Helper()
	s, err := signer(t, letter).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// root is a small fleet's: r and s are root keys, p publishes, o operates, a approves, c is the control service's.
func root(t testing.TB, version uint64, change func(*Root)) Root {
	t.Helper()
	r := Root{APIVersion: score.APIVersion, Kind: Kind, Metadata: RootMetadata{Name: "home", Version: version}}
	for letter, role := range map[byte]Role{'r': RoleRoot, 's': RoleRoot, 'p': RolePublisher, 'o': RoleOperator, 'a': RoleApprover, 'c': RoleControl} {
		r.Spec.Keys = append(r.Spec.Keys, Key{Key: public(t, letter), Name: string(letter), Roles: []Role{role}})
	}
	slices.SortFunc(r.Spec.Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	if change != nil {
		change(&r)
	}
	return r
}

func (r *Root) of(name string) *Key {
	return &r.Spec.Keys[slices.IndexFunc(r.Spec.Keys, func(k Key) bool { return k.Name == name })]
}

// seal has the letters' keys sign a root.
func seal(t testing.TB, r Root, letters string) wire.Envelope {
	t.Helper()
	var signers []wire.Signer
	for _, l := range []byte(letters) {
		signers = append(signers, signer(t, l))
	}
	e, err := r.Seal(1_750_000_000, signers...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func codeOf(err error) wire.Code {
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		return r.Code
	}
	return ""
}

// Each version is handed on by the root keys of the one before, and by nobody else: S31, case 132.
func TestChain(t *testing.T) {
	one := root(t, 1, nil)
	first, err := First(seal(t, one, "r"))
	if err != nil || first.Metadata.Version != 1 {
		t.Fatal(err)
	}
	two := func(r *Root) { r.Spec.Required.Root = 2 }
	for name, tt := range map[string]struct {
		from Root
		next wire.Envelope
		code wire.Code // empty: it follows
	}{
		"the next":                  {one, seal(t, root(t, 2, nil), "r"), ""},
		"by the other root key":     {one, seal(t, root(t, 2, nil), "s"), ""},
		"by nobody":                 {one, seal(t, root(t, 2, nil), ""), wire.CodeUntrusted},
		"by a publisher":            {one, seal(t, root(t, 2, nil), "p"), wire.CodeUntrusted},
		"by a stranger":             {one, seal(t, root(t, 2, nil), "x"), wire.CodeUntrusted},
		"the same again":            {one, seal(t, root(t, 1, nil), "r"), wire.CodeRegressed},
		"one left out":              {one, seal(t, root(t, 3, nil), "r"), wire.CodeRegressed},
		"back":                      {root(t, 5, nil), seal(t, root(t, 4, nil), "r"), wire.CodeRegressed},
		"of another fleet":          {one, seal(t, root(t, 2, func(r *Root) { r.Metadata.Name = "work" }), "r"), wire.CodeWrongAudience},
		"two needed, one":           {root(t, 1, two), seal(t, root(t, 2, two), "r"), wire.CodeTooFewSignatures},
		"two needed, two":           {root(t, 1, two), seal(t, root(t, 2, two), "rs"), ""},
		"new keys that did not":     {one, seal(t, root(t, 2, func(r *Root) { r.of("r").Key = public(t, 'n'); r.of("s").Key = public(t, 'm') }), "r"), wire.CodeUntrusted},
		"new keys that did":         {one, seal(t, root(t, 2, func(r *Root) { r.of("r").Key = public(t, 'n'); r.of("s").Key = public(t, 'm') }), "rn"), ""},
		"a root key that was taken": {one, seal(t, root(t, 2, func(r *Root) { r.of("r").Key = public(t, 'x') }), "x"), wire.CodeUntrusted},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tt.from.Next(tt.next)
			if codeOf(err) != tt.code || (err == nil) != (tt.code == "") {
				t.Fatalf("%v, want %q", err, tt.code)
			}
			if err == nil && got.Metadata.Version != tt.from.Metadata.Version+1 {
				t.Errorf("version %d", got.Metadata.Version)
			}
		})
	}
	if _, err := First(seal(t, one, "p")); codeOf(err) != wire.CodeUntrusted {
		t.Errorf("a root that none of its root keys signed: %v", err)
	}
}

// A root says nothing that a reader could take in two ways, and none that could never be replaced.
func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Root)
		want   string
	}{
		"sound":                     {func(*Root) {}, ""},
		"no root key":               {func(r *Root) { r.Spec.Keys = r.Spec.Keys[:2] }, "/spec/required/root: 1 keys of role root must sign, and there are 0"},
		"more than there are":       {func(r *Root) { r.Spec.Required.Approvals = 2 }, "/spec/required/approvals: 2 keys of role approver must sign, and there are 1"},
		"less than none":            {func(r *Root) { r.Spec.Required.Documents = -1 }, "/spec/required/documents: -1 signatures"},
		"a root key that does more": {func(r *Root) { r.of("r").Roles = []Role{RoleRoot, RolePublisher} }, "a root key signs trust roots and nothing else"},
		"no role":                   {func(r *Root) { r.of("p").Roles = nil }, "a key without a role signs nothing"},
		"an unknown role":           {func(r *Root) { r.of("p").Roles = []Role{"king"} }, `unknown role "king"`},
		"one key twice":             {func(r *Root) { r.of("p").Key = public(t, 'o') }, "listed twice"},
		"revoked and trusted":       {func(r *Root) { r.Spec.Revoked = []string{public(t, 'p')} }, "listed twice"},
		"restart of the future":     {func(r *Root) { r.Spec.Restart = 2 }, "/spec/restart: generations cannot begin anew with version 2, this is version 1"},
		"a connection key":          {func(r *Root) { r.of("p").Key = "UAAA" }, "neither a public account key"},
		"nobody's":                  {func(r *Root) { r.of("p").Name = "" }, "say in 1 to 64 bytes who has the key"},
		"over before it begins": {func(r *Root) {
			r.of("p").NotBefore, r.of("p").NotAfter = time.Unix(9, 0), time.Unix(8, 0)
		}, "must be later than notBefore"},
		"a pattern": {func(r *Root) { r.of("p").Scope.Devices = []string{"main.[a-z]"} }, "is no pattern"},
		"version 0": {func(r *Root) { r.Metadata.Version = 0 }, "versions count from 1 on"},
		"name":      {func(r *Root) { r.Metadata.Name = "a b" }, "/metadata/name"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, p := range root(t, 1, tt.change).Validate() {
				all = append(all, p.String())
			}
			got := strings.Join(all, "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Who may sign what: G62, G75, X46, X80.
func TestRoles(t *testing.T) {
	r := root(t, 1, nil)
	sets := map[string]func() (wire.KeySet, error){"documents": r.Documents, "operations": r.Operations, "control": r.Control}
	may := map[string]map[wire.Kind]string{ // by set and kind of document: the letters that may
		"documents":  {wire.KindDevice: "p", wire.KindClass: "p"},
		"operations": {wire.KindApproval: "ao"},
		"control":    {wire.KindHeartbeat: "c"},
	}
	for name, set := range sets {
		keys, err := set()
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []wire.Kind{wire.KindDevice, wire.KindClass, wire.KindApproval, wire.KindRoot, wire.KindHeartbeat} {
			for _, letter := range []byte("rspoacx") {
				st := wire.Statement{Kind: kind, Audience: "main.pi", Generation: 1, Media: "test"}
				b, err := wire.Seal(st, nil, signer(t, letter))
				if err != nil {
					t.Fatal(err)
				}
				_, err = wire.Verify(b, keys, wire.Expect{Kind: kind, Audience: "main.pi"})
				if want := strings.ContainsRune(may[name][kind], rune(letter)); (err == nil) != want {
					t.Errorf("%s: key %c signs a %s document: %v", name, letter, kind, err)
				}
			}
		}
	}
}

// A key that counts no more is refused by a word of its own. What it signed before stays.
func TestRevoked(t *testing.T) {
	b, err := wire.Seal(wire.Statement{Kind: wire.KindDevice, Audience: "main.pi", Generation: 1, Media: "test"}, nil, signer(t, 'x'))
	if err != nil {
		t.Fatal(err)
	}
	r := root(t, 2, func(r *Root) { r.Spec.Revoked = []string{public(t, 'x')} })
	now, _ := r.Documents()
	if _, err := wire.Verify(b, now, wire.Expect{Kind: wire.KindDevice, Audience: "main.pi"}); codeOf(err) != wire.CodeKeyRevoked {
		t.Error(err)
	}
	before, _ := r.Kept()
	if _, err := wire.Verify(b, before, wire.Expect{Kind: wire.KindDevice, Audience: "main.pi"}); err != nil {
		t.Error(err)
	}
}

// A delegation ends by itself. A device that does not know the time does not refuse for it.
func TestKeyOutOfItsTime(t *testing.T) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	r := root(t, 1, func(r *Root) { r.of("p").NotBefore, r.of("p").NotAfter = day, day.AddDate(0, 0, 7) })
	keys, _ := r.Documents()
	b, err := wire.Seal(wire.Statement{Kind: wire.KindDevice, Audience: "main.pi", Generation: 1, Media: "test"}, nil, signer(t, 'p'))
	if err != nil {
		t.Fatal(err)
	}
	for when, want := range map[time.Time]wire.Code{
		{}: "", day: "", day.AddDate(0, 0, 6): "", day.AddDate(0, 0, 7): wire.CodeKeyNotValid, day.AddDate(0, 0, -1): wire.CodeKeyNotValid,
	} {
		if _, err := wire.Verify(b, keys, wire.Expect{Kind: wire.KindDevice, Audience: "main.pi", Now: when}); codeOf(err) != want {
			t.Errorf("at %s: %v", when, err)
		}
	}
}

// Scopes bound what a key may say: G62, X80.
func TestScopes(t *testing.T) {
	dev, _ := wire.ParseDevice("home.kiosk-1")
	file := score.Score{ID: "f", Spec: score.File{Path: "/etc/f"}}
	doc := func(p score.Policy, scores ...score.Score) score.Assignment {
		var as score.Assignment
		as.Spec.Manifests = []score.Manifest{{Metadata: score.Metadata{Name: "m"}, Spec: score.ManifestSpec{Policy: p, Scores: scores}}}
		return as
	}
	for name, tt := range map[string]struct {
		scope Scope
		doc   score.Assignment
		want  string // empty: it may
	}{
		"everything":             {Scope{}, doc(score.Policy{Preset: score.Converge}, file), ""},
		"its site":               {Scope{Devices: []string{"home.*"}}, doc(score.Policy{}, file), ""},
		"its name":               {Scope{Devices: []string{"*.kiosk-*"}}, doc(score.Policy{}, file), ""},
		"another site":           {Scope{Devices: []string{"office.*"}}, doc(score.Policy{}, file), "may not sign documents of device home.kiosk-1"},
		"no device":              {Scope{Devices: []string{}}, doc(score.Policy{}, file), "may not sign documents of device"},
		"its kind":               {Scope{Kinds: []score.Kind{"file"}}, doc(score.Policy{}, file), ""},
		"another kind":           {Scope{Kinds: []score.Kind{"service"}}, doc(score.Policy{}, file), `scores of kind file (manifest "m", score "f")`},
		"as strict as it may be": {Scope{Policy: &score.Policy{Preset: score.Guarded}}, doc(score.Policy{}, file), ""},
		"stricter":               {Scope{Policy: &score.Policy{Preset: score.Guarded}}, doc(score.Policy{Preset: score.Reviewed}, file), ""},
		"looser":                 {Scope{Policy: &score.Policy{Preset: score.Reviewed}}, doc(score.Policy{}, file), "preset: guarded"},
		"looser by a word":       {Scope{Policy: &score.Policy{Preset: score.Reviewed}}, doc(score.Policy{Preset: score.Reviewed, OnIntent: score.IntentApply}, file), "onIntent: apply"},
		"one word":               {Scope{Policy: &score.Policy{OnAbsent: score.AbsentReport}}, doc(score.Policy{Preset: score.Converge}, file), "onAbsent: collect"},
	} {
		t.Run(name, func(t *testing.T) {
			r := root(t, 1, func(r *Root) { r.of("p").Scope = tt.scope })
			got := r.CheckDocument([]string{public(t, 'p')}, dev, tt.doc)
			switch {
			case tt.want == "" && got != nil:
				t.Error(got)
			case tt.want != "" && (got == nil || got.Code != wire.CodeOutOfScope || !strings.Contains(got.Detail, tt.want)):
				t.Errorf("%v, want %q", got, tt.want)
			}
		})
	}
}

// The right role, the right devices, and destruction only by who may: X80.
func TestOperationsByRole(t *testing.T) {
	dev, _ := wire.ParseDevice("home.kiosk-1")
	for name, tt := range map[string]struct {
		by     string
		act    Act
		change func(*Root)
		code   wire.Code
	}{
		"an operator operates":          {"o", Act{Device: dev}, nil, ""},
		"an approver does not":          {"a", Act{Device: dev}, nil, wire.CodeOutOfScope},
		"an approver approves":          {"a", Act{Device: dev, Approve: true}, nil, ""},
		"an operator does not":          {"o", Act{Device: dev, Approve: true}, nil, wire.CodeOutOfScope},
		"a publisher does not":          {"p", Act{Device: dev, Approve: true}, nil, wire.CodeOutOfScope},
		"destruction, not in the scope": {"a", Act{Device: dev, Approve: true, Destroy: true}, nil, wire.CodeOutOfScope},
		"destruction, in the scope":     {"a", Act{Device: dev, Approve: true, Destroy: true}, func(r *Root) { r.of("a").Scope.Destroy = true }, ""},
		"another device":                {"a", Act{Device: dev, Approve: true}, func(r *Root) { r.of("a").Scope.Devices = []string{"office.*"} }, wire.CodeOutOfScope},
		"two needed, one":               {"a", Act{Device: dev, Approve: true}, func(r *Root) { r.Spec.Required.Approvals = 2 }, wire.CodeTooFewSignatures},
		"two needed, one of the wrong":  {"ao", Act{Device: dev, Approve: true}, func(r *Root) { r.Spec.Required.Approvals = 2 }, wire.CodeOutOfScope},
		"two needed, two":               {"ao", Act{Device: dev, Approve: true}, func(r *Root) { r.Spec.Required.Approvals = 2; r.of("o").Roles = []Role{RoleOperator, RoleApprover} }, ""},
		"destruction by one of two": {"ao", Act{Device: dev, Approve: true, Destroy: true}, func(r *Root) {
			r.Spec.Required.Approvals = 2
			r.of("o").Roles = []Role{RoleApprover}
			r.of("a").Scope.Destroy = true
		}, wire.CodeOutOfScope},
		"by somebody nobody knows at all": {"x", Act{Device: dev}, nil, wire.CodeUntrusted},
	} {
		t.Run(name, func(t *testing.T) {
			r := root(t, 1, tt.change)
			var by []string
			for _, l := range []byte(tt.by) {
				by = append(by, public(t, l))
			}
			got := r.CheckOperation(by, tt.act)
			if (got == nil) != (tt.code == "") || got != nil && got.Code != tt.code {
				t.Errorf("%v, want %q", got, tt.code)
			}
		})
	}
}

func FuzzRoot(f *testing.F) {
	one := root(f, 1, nil)
	b, err := seal(f, root(f, 2, nil), "r").Frame()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := wire.ParseFrame(b)
		if err != nil {
			return
		}
		if r, err := one.Next(e); err == nil && r.Metadata.Version != 2 {
			t.Errorf("version %d follows 1", r.Metadata.Version)
		}
	})
}

// What the next version does is said line by line to who has to sign it, and nothing is left out.
func TestDraft(t *testing.T) {
	one := root(t, 1, nil)
	two := one.Draft()
	p, err := two.Find("p")
	if err != nil || p.Key != public(t, 'p') {
		t.Fatal(err)
	}
	print, err := wire.Fingerprint(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{p.Key, print} {
		if k, err := two.Find(who); err != nil || k.Name != "p" {
			t.Errorf("%s: %v, %v", who, k, err)
		}
	}
	two.Revoke(p)
	until := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	two.Set(Key{Key: public(t, 'n'), Name: "n", Roles: []Role{RolePublisher}, NotBefore: until.Add(-time.Hour), NotAfter: until, Scope: Scope{
		Devices: []string{"home.*"}, Classes: []string{}, Kinds: []score.Kind{"file"}, Policy: &score.Policy{Preset: score.Guarded}, Shell: true,
	}})
	a := *two.of("a")
	a.Scope.Destroy = true
	two.Set(a)
	two.Spec.Required.Root, two.Spec.Restart = 2, 2
	want := []string{
		"change a (" + a.Key + "): approver", "    to a (" + a.Key + "): approver; may destroy",
		"add n (" + public(t, 'n') + "): publisher; devices home.*, classes none, kinds file, policy at most guarded, may run shells; from 2030-01-02T02:04Z until 2030-01-02T03:04Z",
		"revoke p (" + p.Key + "): publisher",
		"require signatures (root 2, documents 1, operations 1, approvals 1) instead of signatures (root 1, documents 1, operations 1, approvals 1)",
		"generations begin anew with version 2: what was signed before counts no more, and devices change nothing until something is published",
	}
	if got := one.Changes(two); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(one.Spec.Revoked) != 0 || one.of("p") == nil {
		t.Error("the version before was changed")
	}
	back := two.Draft()
	back.Spec.Revoked = nil
	back.Spec.Keys = slices.DeleteFunc(back.Spec.Keys, func(k Key) bool { return k.Name == "c" })
	if got := strings.Join(two.Changes(back), "\n"); !strings.Contains(got, "forget c (") || !strings.Contains(got, "revoke no longer "+p.Key) {
		t.Errorf("got %s", got)
	}
	twice := one.Draft()
	twice.Spec.Keys = append(twice.Spec.Keys, Key{Key: public(t, 'z'), Name: "p", Roles: []Role{RoleControl}})
	if _, err := twice.Find("p"); err == nil || !strings.Contains(err.Error(), "2 keys named") {
		t.Errorf("got %v", err)
	}
	if r := New("home", one.Spec.Keys...); len(r.Validate()) > 0 || r.Metadata.Version != 1 {
		t.Errorf("got %+v", r.Validate())
	}
	if r, err := Peek(seal(t, one, "")); err != nil || r.Metadata.Version != 1 {
		t.Errorf("got %v", err)
	}
}
