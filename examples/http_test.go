package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestCurl runs the commands of docs/http.md, as TestGRPCurl does.
func TestCurl(t *testing.T) {
	sidecartest.RequireTool(t, "curl")
	for _, tool := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("docs/http.md uses %s: install it (%v)", tool, err)
		}
	}
	perform(t, "../docs/http.md", "$ curl", "$ memsidecar")
}

// nodeFolder returns a folder with the files of examples/mcp and the packages of its lock file.
func nodeFolder(t *testing.T) string {
	t.Helper()
	sidecartest.RequireTool(t, "node")
	if regexp.MustCompile(`"resolved"|://registry`).MatchString(read(t, "mcp/package-lock.json")) {
		t.Error("the lock file names hosts: make it with --omit-lockfile-registry-resolved")
	}
	dir := t.TempDir()
	for _, name := range []string{"client.mjs", "validate.mjs", "package.json", "package-lock.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, filepath.Join("mcp", name))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	return dir
}

// TestMCP uses the memory with the protocol's own Node client, over HTTP and over standard input and output, and checks the OpenAPI
// document against the specification.
func TestMCP(t *testing.T) {
	dir := nodeFolder(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	token, err := sidecartest.Run(t.Context(), "token", "create", "--namespace", "default", "--file", tokens)
	if err != nil {
		t.Fatal(err)
	}
	token = regexp.MustCompile(`memsidecar_\S+`).FindString(token)
	s := sidecartest.StartProcess(
		t,
		sidecartest.ProcessOptions{Settings: []string{"api.listen=127.0.0.1:0", "api.mcp=true", "auth.tokens_file=" + tokens}},
	)
	const refusal = `select_from_numbered_list: the list "default" being shown has no number 9: it has 1 to 2. ` +
		"Do not invent an item: ask the user which one they mean, or search again"
	const want = `tools: forget list_memories put_numbered_list recall remember select_from_numbered_list
recalled: The user is allergic to peanuts.
the second: /mv/2
the ninth: ` + refusal + `
forgotten: false true
notebook: true
templates: memsidecar://digest/{day}
`
	for name, args := range map[string][]string{
		"http": {"http", "http://" + s.API + "/mcp", "小林", token}, "stdio": {"stdio", "bob", s.Addr},
	} {
		command := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(dir, "client.mjs")}, args...)...)
		command.Env = append(sidecartest.Environ(), "MEMSIDECAR_TOKEN="+token,
			"PATH="+filepath.Dir(sidecartest.Binary(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := command.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}

	document, err := filepath.Abs("../proto/memsidecar/v1/openapi/memsidecar.swagger.json")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "validate.mjs"), document).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "OpenAPI 2.0: memsidecar, ") {
		t.Errorf("%v: %s", err, out)
	}
}
