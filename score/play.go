package score

// checkPlay reports what is wrong with how a score is to be played, and what the policy of its manifest makes
// impossible.
func (s Score) checkPlay(r *Report, manifest Policy) {
	policy := manifest
	if s.Policy != nil {
		s.Policy.check(r.At("policy"), false)
		s.Policy.checkRestricts(r.At("policy"), manifest)
		if s.Policy.OnFailure != "" {
			policy.OnFailure = s.Policy.OnFailure // the nearer word counts
		}
		if s.Policy.Deadline != 0 {
			policy.Deadline = s.Policy.Deadline
			if policy.OnFailure != FailureRollBack {
				r.At("policy", "deadline").Warnf("deadline has no effect without onFailure: rollBack")
			}
		}
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
	if policy.OnFailure == FailureRollBack {
		s.checkRollBack(r, policy)
	}
}

// checkRollBack reports what cannot go back, or cannot become ready in time.
func (s Score) checkRollBack(r *Report, policy Policy) {
	if s.Decommission {
		r.At("decommission").Errorf("what is removed with its data cannot be rolled back: decommission it in a manifest without onFailure: rollBack")
	}
	deadline := policy.Filled().Deadline
	if s.Health != nil && s.Health.Readiness != nil && deadline > 0 {
		if takes := s.Health.Readiness.quickest(); takes >= deadline {
			r.At("health", "readiness").Errorf("readiness takes %s at least, and the generation is rolled back after %s: make the deadline longer, or the probe quicker", takes, deadline)
		}
	}
	if s.Engine != nil && s.Engine.Noop {
		r.At("engine", "noop").Warnf("a score that is only looked at does not become ready while it differs: the generation would be rolled back")
	}
}
