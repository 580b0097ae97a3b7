package score_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

const begin = "-----BEGIN "

// Forms in which people write secrets down. ☠ stands for the secret, which no problem may repeat. G60, G61, X55
var secretForms = []string{
	// private keys, and tokens that are known by their form
	begin + "PRIVATE KEY-----", begin + "OPENSSH PRIVATE KEY-----", begin + "PGP PRIVATE KEY BLOCK-----", begin + "RSA PRIVATE KEY-----",
	"PuTTY-User-Key-File-3: ssh-ed25519", "AGE-SECRET-KEY-1" + strings.Repeat("Q", 40), "seed: SU" + strings.Repeat("A", 56),
	"x = eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "id AKIA" + strings.Repeat("A", 16), "AIza" + strings.Repeat("b", 35),
	"ghp_" + strings.Repeat("a", 36), "glpat-" + strings.Repeat("a", 20), "xoxb-123456789012-abcdef", "dckr_pat_abcdefghij-klm", "github_pat_" + strings.Repeat("a", 22),
	// headers
	"Authorization: Bearer ☠", `"authorization": "Basic ☠"`, "authorization=token ☠", "Cookie: session=☠", "Set-Cookie: sid=☠; Path=/", "X-Api-Key: ☠", "x-auth-token: ☠",
	`curl -H "Authorization: Bearer ☠" https://example.org`,
	// URLs
	"mqtt://kiosk:☠@broker.example.org", "postgres://app:☠@db/app?sslmode=require", "https://user:☠@example.org/x.git", "redis://:☠@localhost:6379",
	"https://hooks.slack.com/services/T0/B0/☠", "https://discord.com/api/webhooks/123/☠", "https://s3.example.org/x?X-Amz-Signature=0123456789abcdef0123", "https://example.org/?token=☠",
	// settings
	"password=☠", "password: ☠", "PASSWORD = '☠'", `"password": "☠",`, "password: \"☠\"", "DB_PASSWORD=☠", "export DB_PASSWORD2=☠", "dbPassword: ☠", "mqtt.password=☠", "password => '☠'",
	"    psk=\"☠\"", "wpa_passphrase=☠", "psk: ☠", "api_key: ☠", "apiKey = \"☠\"", "API-KEY: ☠", "client_secret=☠", "clientSecret: ☠", "secretKey: ☠", "aws_secret_access_key = ☠",
	"access_token: ☠", "auth_key: ☠", "pwd=☠", "passwd = ☠", "requirepass ☠", "remote_password ☠", "masterauth ☠", "token ☠", "pass = ☠", "enabled: true, password: ☠",
	"Environment=PASSWORD=☠", "Environment=\"TZ=UTC\" \"MQTT_PASSWORD=☠\"", "SetCredential=token:☠", "credential=☠", "PIN_TOKEN: 4711", "<password>☠</password>", `<Secret type="x">☠</Secret>`,
	// connections
	"host=db user=app password=☠ dbname=app", "Server=db;User Id=app;Password=☠;", "AccountName=x;AccountKey=☠==;EndpointSuffix=core",
	// programs
	"ExecStart=/usr/bin/app --password=☠", "ExecStart=/usr/bin/app --token ☠ run", "app -password ☠", "curl -u admin:☠ http://localhost", "sshpass -p ☠ ssh x", "mysql --password='☠'",
	// defaults
	"url: ${API_TOKEN:-☠}", "${PASSWORD-☠}", "PW=${DB_PASS:=☠}",
	// hashes that somebody can guess at
	"root:$6$salt$" + strings.Repeat("a", 20), "admin:$2y$10$" + strings.Repeat("a", 20), "x:$apr1$ab$cdefghijkl", "user:{SSHA}abcdefghij==", "kiosk:$7$101$abcdef$ghijkl", "$argon2id$v=19$m=1$abc",
}

// What names a secret, or only speaks of one.
var harmlessForms = []string{
	"", "Welcome.", "password_file /etc/mosquitto/passwd", "PasswordAuthentication no", "password requisite pam_pwquality.so retry=3", "auth sufficient pam_unix.so", "token_ttl = 3600",
	"password=", "password: ''", "password: null", "password: ~", "password=$PASSWORD", "password=${PASSWORD}", "password: ${DB_PASSWORD:?missing}", "password = $(cat /run/secrets/x)",
	"password: {{ secret \"db\" }}", "password: \"{{ .db }}\"", "password_file: /run/secrets/db", "password: /run/secrets/db", "password: file:/run/secrets/db", "token: env:TOKEN", "password: !secret db",
	"password: <your password>", "password: ********", "password: xxxx", "psk-flags=0", "LoadCredential=token:/etc/credstore/token", "ImportCredential=token", "EnvironmentFile=/etc/app.env",
	"PASSWORD_FILE=/run/secrets/db", "passwd: files systemd", "# password: put it into /etc/continuo/secrets.env", "; password = x", "// token: abc", "proxy_pass http://backend;", "proxy_pass backend",
	"secrets:", "  - db-password", "secret: true", "tokens: 5", "max_tokens = 4096", "keyboard: us", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI kiosk", "PWD=/app", "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----",
	"https://example.org/a:b@c", "git@example.org:x/y.git", "ssh://git@example.org/x.git", "http://localhost:8080/", "mqtt://broker:1883", "https://user:${PASS}@example.org", "https://user:$PASS@example.org",
	"ExecStart=/usr/bin/app --password-file=/run/x", "app --token=$TOKEN", "app --token \"$TOKEN\" run", "podman run -u 1000:1000 x", "curl -u \"$USER:$PASS\" http://x", "authorization: required", "Authorization: Bearer ${TOKEN}",
	"Authorization: Bearer $TOKEN", "password = os.environ[\"PASSWORD\"]", "token = config.get('token')", "password: string", "passwd: compat", "<token/>", "<password></password>", "The password is on the back.",
	"${VERSION:-1.27}", "${TOKEN:-}", "tokenizer: bpe", "secretary: Ada", "sig=ok", "PermitRootLogin prohibit-password", "user = kiosk", "S3_BUCKET=x", "SUMMARY", "pass: true",
	"PermitEmptyPasswords no", "credential_helper = store", "[credential]", "NOPASSWD: ALL", "kiosk ALL=(ALL) NOPASSWD: /usr/bin/reboot", "pid_file = /run/x", "key = value", "license: MIT",
}

func literals(s score.Spec) []score.Problem {
	m := manifest(score.Score{ID: "x", Spec: s})
	var out []score.Problem
	for _, p := range m.Validate() {
		if strings.Contains(p.Text, "looks like a secret") {
			out = append(out, p)
		}
	}
	return out
}

func TestLiteralSecretsAreRefused(t *testing.T) { // G60, G61, X55
	const canary = "k7Vq9-canary"
	if len(secretForms) < 80 {
		t.Fatalf("only %d forms", len(secretForms))
	}
	for _, form := range secretForms {
		line := strings.ReplaceAll(form, "☠", canary)
		found := literals(score.File{Path: "/etc/x", Content: "# of an application\nname = kiosk\n" + line + "\n", Mode: 0o600})
		if len(found) != 1 || found[0].Path != "/spec/scores/0/spec/content" || found[0].Severity != score.Error || !strings.Contains(found[0].Text, "written here in line 3 (") {
			t.Errorf("%s: got %v", form, found)
		}
		for _, p := range found {
			if strings.Contains(p.String(), canary) || strings.Contains(p.String(), line) {
				t.Errorf("%s: the problem repeats it: %s", form, p)
			}
		}
		if n := len(literals(score.Service{Unit: "x.service", UnitFile: "[Service]\nExecStart=/bin/true\n" + line + "\n"})); n != 1 {
			t.Errorf("%s: %d problems of a unit file", form, n)
		}
	}
}

func TestReferencesAreNoSecrets(t *testing.T) { // X55
	for _, line := range harmlessForms {
		if found := literals(score.File{Path: "/etc/x", Content: "name = kiosk\n" + line + "\n", Mode: 0o600}); len(found) > 0 {
			t.Errorf("%s: got %v", line, found)
		}
	}
}

func TestLiteralsOfAContainer(t *testing.T) { // G60
	base := score.Container{Name: "web", Image: "registry.example.org/web:1.4"}
	tests := []struct {
		name   string
		change func(*score.Container)
		want   string // path below the spec; empty: nothing
	}{
		{"none", func(*score.Container) {}, ""},
		{"env", func(c *score.Container) {
			c.Env = map[string]score.Value{"TZ": score.Text("UTC"), "DB_PASSWORD": score.Text("hunter2")}
		}, "/env/DB_PASSWORD"},
		{"env by reference", func(c *score.Container) {
			c.Env = map[string]score.Value{"DB_PASSWORD": score.FromSecret("db-password")}
		}, ""},
		{"env from a file", func(c *score.Container) {
			c.Env = map[string]score.Value{"DB_PASSWORD_FILE": score.Text("/run/secrets/db")}
		}, ""},
		{"env with a URL", func(c *score.Container) {
			c.Env = map[string]score.Value{"DB": score.Text("postgres://a:hunter2@db/x")}
		}, "/env/DB"},
		{"flag", func(c *score.Container) { c.Command = []string{"serve", "--token=hunter2"} }, "/command/1"},
		{"flag and value", func(c *score.Container) { c.Command = []string{"serve", "--token", "hunter2"} }, "/command/2"},
		{"flag and reference", func(c *score.Container) { c.Command = []string{"serve", "--token", "$(TOKEN)"} }, ""},
		{"header", func(c *score.Container) { c.Command = []string{"get", "-H", "Authorization: Bearer hunter2"} }, "/command/2"},
		{"header and value", func(c *score.Container) { c.Command = []string{"Authorization", "hunter2"} }, "/command/1"},
		{"words", func(c *score.Container) { c.Command = []string{"token", "list"} }, ""},
		{"label", func(c *score.Container) { c.Labels = map[string]string{"org.example.api-key": "hunter2"} }, "/labels/org.example.api-key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := base
			tt.change(&c)
			found := literals(c)
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].Path != "/spec/scores/0/spec"+tt.want) {
				t.Errorf("got %v, want %s", found, tt.want)
			}
			for _, p := range found {
				if strings.Contains(p.String(), "hunter2") {
					t.Errorf("the value is told: %s", p)
				}
			}
		})
	}
}

// An author who knows better says so, for one score, and it stays said.
func TestNoSecrets(t *testing.T) {
	s := score.Score{ID: "x", NoSecrets: true, Spec: score.File{Path: "/etc/x", Content: "password = everybody-knows\n", Mode: 0o644}}
	m := manifest(s)
	if ps := m.Validate(); len(ps) > 0 {
		t.Errorf("got %v", ps)
	}
	b, err := score.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var back score.Manifest
	if err := score.Decode(b, &back); err != nil || !back.Spec.Scores[0].NoSecrets {
		t.Errorf("%v\n%s", err, b)
	}
	many := strings.Repeat("password = everybody-knows\n", 20)
	if found := literals(score.File{Path: "/etc/x", Content: many, Mode: 0o644}); len(found) != 5 {
		t.Errorf("%d problems for one text", len(found))
	}
}

func BenchmarkLiterals(b *testing.B) {
	text := strings.Repeat("some.setting = of an application, and nothing else\n", 1300)
	m := manifest(score.Score{ID: "x", Spec: score.File{Path: "/etc/x", Content: text, Mode: 0o644}})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Validate()
	}
}

func FuzzLiterals(f *testing.F) {
	for _, s := range append(secretForms[:40:40], harmlessForms[:20]...) {
		f.Add("DB_PASSWORD", s)
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		for _, p := range literals(score.File{Path: "/etc/x", Content: text, Mode: 0o644}) {
			if len(p.Text) > 500 {
				t.Errorf("a problem of %d bytes", len(p.Text))
			}
		}
		literals(score.Container{Name: "x", Env: map[string]score.Value{key: score.Text(text)}, Command: []string{key, text}})
	})
}

// A field whose name says that it holds a secret cannot hold one: its type names it (G60).
func TestNoFieldHoldsASecret(t *testing.T) {
	references := 0
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, at string) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem(), at)
			return
		case reflect.Struct:
		default:
			return
		}
		if typ == reflect.TypeFor[score.SecretRef]() || typ == reflect.TypeFor[score.Value]() {
			references++
			return
		}
		if seen[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner := f.Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
				inner = inner.Elem()
			}
			if score.SecretName(name) && name != "secret" && inner.Kind() == reflect.String {
				t.Errorf("%s.%s is text: take a SecretRef or a Value", at, name)
			}
			// The service manager shows the environment of a unit to everybody: no secret can be in it.
			if name == "env" && at != "job.unit" && inner != reflect.TypeFor[score.Value]() {
				t.Errorf("%s.%s is of %s: take Values", at, name, inner)
			}
			walk(f.Type, at+"."+name)
		}
	}
	for _, k := range score.Kinds() {
		walk(k.Type, string(k.Kind))
	}
	if references < 2 {
		t.Errorf("only %d references were found", references)
	}
}
