package interpret

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// crashed is deferred: one kind that crashes fails its own scores only.
func (st *ScoreStatus) crashed() {
	if p := recover(); p != nil {
		st.end(Failed, CodePanic, fmt.Sprintf("interpreter of %s crashed: %.500s; this is a bug of the agent, at %s", st.Kind, fmt.Sprint(p), origin()))
	}
}

// origin names the function that panicked. A whole stack is nothing for a status, and
// differs every time.
func origin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") || !more {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
	}
}

func (st *ScoreStatus) end(o Outcome, c Code, msg string) {
	st.Outcome, st.Code, st.Message = o, c, Brief(msg)
}

// Brief cuts a message to what fits in a status beside others. What a device says, of
// itself or of what it was sent, has no bounds of its own.
func Brief(msg string) string {
	return clip(msg, 1000)
}

// clip cuts text to a number of bytes, and what tells that it was cut.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "?")
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// fault ends st with the outcome that the code of a fault has.
func (b Binding) fault(st *ScoreStatus, what string, err error) {
	f := topology.FaultOf(err)
	o := Failed
	switch f.Code {
	case topology.CodeUnavailable, topology.CodeNotSupported:
		o = Unsupported
	case topology.CodeForeign, topology.CodeMasked:
		o = Conflict
	}
	st.end(o, Code(f.Code), what+": "+f.Text)
	if b.field != nil {
		st.Path = "/" + b.field(f.Code)
	}
}

// observed reports what was seen; o is nil if nothing was.
func (st *ScoreStatus) observed(o Observed) {
	if o == nil {
		return
	}
	st.Conditions = o.Conditions()
	b, err := score.Encode(o)
	if err != nil {
		panic(fmt.Sprintf("interpret: state of %s is not data: %v", st.Kind, err))
	}
	st.Observed = b
}
