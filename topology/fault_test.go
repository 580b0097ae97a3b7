package topology

import (
	"context"
	"fmt"
	"syscall"
	"testing"
)

// Whatever comes is a fault with a code, and what went well is one without: nobody has to ask twice.
func TestFaultOf(t *testing.T) {
	own := Faultf(CodeForeign, "it is theirs")
	for name, tt := range map[string]struct {
		err  error
		code Code
		text string
	}{
		"nothing":    {nil, "", ""},
		"a fault":    {own, CodeForeign, "it is theirs"},
		"within":     {fmt.Errorf("cannot write: %w", own), CodeForeign, "cannot write: it is theirs"},
		"an errno":   {fmt.Errorf("x: %w", syscall.ENOSPC), CodeNoSpace, "x: no space left on device"},
		"a deadline": {context.DeadlineExceeded, CodeTimeout, "context deadline exceeded"},
		"unknown":    {fmt.Errorf("odd"), CodeUnknown, "odd"},
	} {
		if f := FaultOf(tt.err); f.Code != tt.code || f.Text != tt.text {
			t.Errorf("%s: %q, %q", name, f.Code, f.Text)
		}
	}
}
