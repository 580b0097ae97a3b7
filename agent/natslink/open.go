package natslink

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// open verifies an envelope for d and reads the assignment in it. by are the keys that signed it. series is the version of
// the trust root under which it must have been signed at least.
func open(envelope []byte, d wire.Device, keys wire.KeySet, series uint64, now time.Time) (in agent.Intent, by []string, err error) {
	v, err := wire.Verify(envelope, keys, wire.Expect{Kind: wire.KindDevice, Audience: d.String(), Now: now, Since: series})
	if err != nil {
		return agent.Intent{}, nil, refusalOf("a document", err)
	}
	in, err = assignmentOf(v, d, envelope)
	in.Series = series
	return in, v.By, err
}

// assignmentOf reads the assignment in what was verified.
func assignmentOf(v wire.Verified, d wire.Device, envelope []byte) (agent.Intent, error) {
	st := v.Statement
	unsupported := func(format string, args ...any) (agent.Intent, error) {
		return agent.Intent{}, &agent.Refusal{Code: CodeUnsupported, Message: fmt.Sprintf("generation %d is signed, and this agent cannot read it: %s; update the agent", st.Generation, fmt.Sprintf(format, args...))}
	}
	malformed := func(format string, args ...any) (agent.Intent, error) {
		return agent.Intent{}, &agent.Refusal{Code: CodeMalformed, Message: fmt.Sprintf("generation %d is signed, and is not sound: %s", st.Generation, fmt.Sprintf(format, args...))}
	}
	if st.Media != wire.MediaAssignment {
		return unsupported("it is a %q", st.Media)
	}
	payload, err := v.Open()
	if err != nil {
		return agent.Intent{}, refusalOf("a document", err)
	}
	// The version comes first: what a later version added is no damage.
	var version struct {
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(payload, &version); err != nil {
		return malformed("%v", err)
	}
	if version.APIVersion != score.APIVersion {
		return unsupported("it is written in %q, and this agent reads %q", version.APIVersion, score.APIVersion)
	}
	in := agent.Intent{Generation: st.Generation, Digest: hex.EncodeToString(st.Digest), Envelope: envelope}
	if err := score.Decode(payload, &in.Assignment); err != nil {
		if twoReadings(payload) {
			return malformed("%v", err)
		}
		return unsupported("%v", err)
	}
	switch m := in.Assignment.Metadata; {
	case m.Name != d.ID:
		return malformed("the assignment inside is for %q", m.Name)
	case m.Generation != st.Generation:
		return malformed("the assignment inside says generation %d", m.Generation)
	}
	return in, nil
}

// twoReadings reports whether readers could take a document in two ways, as one in which a name is given twice. No version
// writes such a thing.
func twoReadings(payload []byte) bool { return !jsontext.Value(payload).IsValid() }

// refusalOf turns what the wire refused into what the agent reports.
func refusalOf(what string, err error) *agent.Refusal {
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		return &agent.Refusal{Code: interpret.Code(r.Code), Message: what + " was refused: " + r.Detail}
	}
	return &agent.Refusal{Code: CodeMalformed, Message: what + " was refused: " + err.Error()}
}
