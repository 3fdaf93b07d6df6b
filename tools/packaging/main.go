// Command packaging checks how memsidecar is packaged with the code of those who will read it: the Dockerfiles with BuildKit's
// linter (docker build --check), the compose file with compose's loader, the manifests with the API server's own validation and
// the restricted level of Pod Security.
//
//	packaging -root REPOSITORY
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	root := flag.String("root", ".", "the repository")
	flag.Parse()
	failed := false
	for _, check := range []struct {
		name string
		run  func(ctx context.Context, root string) ([]string, error)
	}{
		{"dockerfile", dockerfiles}, {"compose", compose}, {"kubernetes", kubernetes},
	} {
		problems, err := check.run(context.Background(), *root)
		if err != nil {
			problems = append(problems, err.Error())
		}
		for _, p := range problems {
			fmt.Printf("%s: %s\n", check.name, p)
		}
		if len(problems) == 0 {
			fmt.Println(check.name + ": ok")
		}
		failed = failed || len(problems) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// files lists what matches, and complains when nothing does.
func files(root, pattern string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("there is no %s in %s", pattern, root)
	}
	slices.Sort(found)
	return found, err
}
