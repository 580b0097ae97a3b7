package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

// newLog returns a logger with structured fields. Under systemd the journal adds the
// time, and takes the priority from the start of the line.
func newLog(w io.Writer, level, format string) (*logrus.Logger, error) {
	l := logrus.New()
	l.SetOutput(w)
	lv, err := logrus.ParseLevel(level)
	if err != nil {
		return nil, cli.Usagef("unknown log level %q: it is debug, info, warn or error", level)
	}
	l.SetLevel(lv)
	text := &logrus.TextFormatter{DisableColors: true, FullTimestamp: true}
	switch {
	case format == "json":
		l.SetFormatter(&logrus.JSONFormatter{})
	case format != "text":
		return nil, cli.Usagef("unknown log format %q: it is text or json", format)
	case os.Getenv("JOURNAL_STREAM") != "":
		text.DisableTimestamp = true
		l.SetFormatter(journal{text})
	default:
		l.SetFormatter(text)
	}
	return l, nil
}

// journal puts the priority before each line, as sd-daemon(3) has it.
type journal struct{ *logrus.TextFormatter }

func (j journal) Format(e *logrus.Entry) ([]byte, error) {
	line, err := j.TextFormatter.Format(e)
	if err != nil {
		return nil, err
	}
	priority := map[logrus.Level]int{
		logrus.PanicLevel: 0, logrus.FatalLevel: 2, logrus.ErrorLevel: 3, logrus.WarnLevel: 4, logrus.InfoLevel: 6,
	}
	p, ok := priority[e.Level]
	if !ok {
		p = 7
	}
	return append(fmt.Appendf(nil, "<%d>", p), bytes.TrimLeft(line, "\n")...), nil
}
