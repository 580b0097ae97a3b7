package authority

import (
	"path"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Check reports what is wrong with c.
func (c Ceiling) Check(r *score.Report) {
	if c.Policy != nil {
		checkPolicy(r.At("policy"), *c.Policy)
	}
	for i, k := range c.Kinds {
		if _, ok := score.Lookup(k); !ok {
			r.At("kinds", i).Warnf("this version knows no kind %q", k)
		}
	}
	checkRoots(r.At("paths"), c.Paths)
	checkRoots(r.At("adopt"), c.Adopt)
	if (c.Units != nil || c.Images != nil) && c.Paths == nil && (c.Kinds == nil || slices.Contains(c.Kinds, score.KindFile)) {
		r.Warnf("files may be written everywhere, also where programs look for what to start: list paths besides units and images")
	}
	for i, prefix := range c.Images {
		host, rest, _ := strings.Cut(prefix, "/")
		switch {
		case host == "" || strings.Contains(prefix, "//") || strings.HasSuffix(prefix, "/") || strings.ContainsAny(prefix, " \t\n*?"):
			r.At("images", i).Errorf("image %q must be a registry, or a repository below one, such as registry.example.org/team", prefix)
		case strings.ContainsAny(rest, ":@"):
			r.At("images", i).Errorf("image %q has a tag or a digest: the ceiling lists where images come from, and the score says which", prefix)
		case !strings.ContainsAny(host, ".:") && host != "localhost":
			r.At("images", i).Errorf("image %q does not begin with a registry, such as docker.io", prefix)
		}
	}
	for i, pattern := range c.Units {
		switch _, err := path.Match(pattern, ""); {
		case err != nil:
			r.At("units", i).Errorf("%q is no pattern: '[' is not closed, or '\\' ends it", pattern)
		case !strings.ContainsAny(pattern, ".*"):
			r.At("units", i).Errorf("unit %q matches nothing: the name of a unit has an ending, such as %[1]s.service", pattern)
		}
	}
	for i, pattern := range c.Secrets {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			r.At("secrets", i).Errorf("%q is no pattern of secrets, such as wifi-psk or kiosk-*", pattern)
		}
	}
	for i, v := range c.Verbs {
		if !slices.Contains(interpret.Verbs(), v) {
			r.At("verbs", i).Errorf("unknown verb %q: it is one of %s", v, list(interpret.Verbs()))
		}
	}
}

func checkRoots(r *score.Report, roots []string) {
	for i, p := range roots {
		if !path.IsAbs(p) || p != path.Clean(p) {
			r.At(i).Errorf("path %q must be absolute and clean: no '..', no '//' and no '/' at the end", p)
		}
	}
}

// checkPolicy refuses, besides what no policy may say, what a ceiling cannot: a word that
// would have to make a manifest do more.
func checkPolicy(r *score.Report, p score.Policy) {
	word(r, "preset", p.Preset, score.Converge, score.Guarded, score.Reviewed)
	word(r, "onIntent", p.OnIntent, score.IntentApply, score.IntentConfirm)
	word(r, "onDrift", p.OnDrift, score.DriftCorrect, score.DriftReport, score.DriftIgnore)
	word(r, "onAbsent", p.OnAbsent, score.AbsentCollect, score.AbsentRestore, score.AbsentRelease, score.AbsentReport)
	word(r, "onDestroy", p.OnDestroy, score.DestroySignature, score.DestroyNever)
	word(r, "onFailure", p.OnFailure, score.FailureHold)
	if p.Deadline != 0 {
		r.At("deadline").Errorf("a ceiling has no deadline: a manifest says how long its generation may take")
	}
	if p.MinReady != 0 {
		r.At("minReady").Errorf("a ceiling has no minReady: a manifest says how long its generation has to be ready")
	}
	if p.Brake != nil {
		p.Brake.Check(r.At("brake"))
	}
	if p.Window != nil {
		p.Window.Check(r.At("window"))
	}
}

func word[T ~string](r *score.Report, field string, w T, words ...T) {
	if w != "" && !slices.Contains(words, w) {
		r.At(field).Errorf("unknown %s %q: it is one of %s", field, w, list(words))
	}
}

func list[T ~string](words []T) string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return strings.Join(out, ", ")
}
