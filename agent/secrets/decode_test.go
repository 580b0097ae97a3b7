package secrets

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestDecodeEnv(t *testing.T) {
	tests := []struct{ name, text, want string }{ // want begins with "line" for an error
		{"empty", "", "map[]"},
		{"comments and blanks", "# a=1\n  ; b=2\n\n \t\n", "map[]"},
		{"plain", "a=1\nB_2=two words \n c.d-e= \t x\t\n", `map[B_2:two words a:1 c.d-e:x]`},
		{"nothing", "a=\nb= \n", "map[a: b:]"},
		{"signs", "a=b=c;#$d`e\n", "map[a:b=c;#$d`e]"},
		{"single quotes", "a='x \"y\" \\z #1 '\n", `map[a:x "y" \z #1 ]`},
		{"double quotes", `a="x \"y\" \\ \$1 \` + "`" + `"`, "map[a:x \"y\" \\ $1 `]"},
		{"several lines", "a='1\n2\n'\nb=3", "map[a:1\n2\n b:3]"},
		{"last line", "a=1\nb=2", "map[a:1 b:2]"},
		{"twice", "a=1\nb=2\na=3\n", "line 3 sets a again, after line 1"},
		{"no sign", "a=1\nsecret\n", "line 2: it is not NAME=value"},
		{"export", "export a=1", "line 1: it is not NAME=value"},
		{"blank before the sign", "a =1", "line 1: it is not NAME=value"},
		{"name of dots", "..=1", "line 1: it is not NAME=value"},
		{"quote inside", "a=b'c'", "line 1: its value holds a quote or a backslash"},
		{"backslash", `a=b\`, "line 1: its value holds a quote or a backslash"},
		{"comment behind", "a=b # c", "line 1: its value holds what could be a comment"},
		{"open quote", "a=1\nb='x\n\n", "line 2: the quote that begins there does not end"},
		{"behind the quote", "a='x'y", "line 1: something follows the quote"},
		{"comment behind the quote", "a='x' # y", "line 1: something follows the quote"},
		{"escape", `a="\n"`, "line 1: between double quotes a backslash stands before"},
		{"open escape", `a="\`, "line 1: between double quotes a backslash stands before"},
		{"carriage return", "a=1\r\nb=2", "line 1: it holds a NUL or a carriage return"},
		{"NUL", "a=1\nb='\x00'", "line 2: it holds a NUL or a carriage return"},
		{"long name", strings.Repeat("a", 129) + "=1", "line 1: it is not NAME=value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeEnv([]byte(tt.text))
			text := map[string]string{}
			for k, v := range got {
				text[k] = string(v)
			}
			if err != nil {
				if !strings.HasPrefix(err.Error(), tt.want) || !strings.HasPrefix(tt.want, "line") {
					t.Errorf("got %v, want %s", err, tt.want)
				}
			} else if fmt.Sprint(text) != tt.want {
				t.Errorf("got %v, want %s", text, tt.want)
			}
		})
	}
}

// What is read can be written down and read again, and no error shows what it is about.
func FuzzDecodeEnv(f *testing.F) {
	f.Add([]byte("a=1\n# x\nb='2\n3'\nc=\"\\\"\"\n"))
	f.Add([]byte("a = 1"))
	f.Add([]byte("a=\"\\"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := decodeEnv(text)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		var again bytes.Buffer
		for name, v := range all {
			fmt.Fprintf(&again, "%s=\"%s\"\n", name, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(v)))
		}
		twice, err := decodeEnv(again.Bytes())
		if err != nil || len(twice) != len(all) {
			t.Fatalf("%d of %d came back: %v", len(twice), len(all), err)
		}
		for name, v := range all {
			if !validName(name) || !bytes.Equal(twice[name], v) {
				t.Errorf("%q came back as %q", v, twice[name])
			}
		}
	})
}
