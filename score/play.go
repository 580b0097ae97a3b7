package score

// checkPlay reports what is wrong with how a score is to be played, and what the policy of its manifest makes
// impossible.
func (s Score) checkPlay(r *Report, manifest Policy) {
	back := manifest.OnFailure == FailureRollBack
	if p := s.Policy; p != nil {
		p.check(r.At("policy"), ofScore)
		p.checkRestricts(r.At("policy"), manifest)
		if p.OnFailure == FailureRollBack && !back {
			r.At("policy", "onFailure").Warnf("onFailure: rollBack has no effect here: it is a manifest that is rolled back, as a whole")
		}
		back = back && (p.OnFailure == "" || p.OnFailure == FailureRollBack)
	}
	if s.Health != nil {
		s.Health.check(r.At("health"), s.Spec)
		if s.Decommission {
			r.At("health").Warnf("health has no effect: nothing is probed of what is to be removed")
		}
	}
	if s.Engine != nil {
		s.Engine.check(r.At("engine"))
	}
	if back {
		s.checkRollBack(r, manifest.Filled().Deadline)
	}
}

// checkRollBack reports what cannot go back, or cannot become ready in time.
func (s Score) checkRollBack(r *Report, deadline Duration) {
	if s.Decommission {
		r.At("decommission").Errorf("what is removed with its data cannot be rolled back: decommission it in a manifest without onFailure: rollBack")
	}
	if s.Health != nil && s.Health.Readiness != nil && deadline > 0 {
		if takes := s.Health.Readiness.quickest(); takes >= deadline {
			r.At("health", "readiness").Errorf("readiness takes %s at least, and the generation is rolled back after %s: make the deadline longer, or the probe quicker", takes, deadline)
		}
	}
	if s.Engine != nil && s.Engine.Noop {
		r.At("engine", "noop").Warnf("while a score that is only looked at differs, its generation does not count as good, and nothing can be rolled back to it")
	}
}
