// Command sbom writes what a Go binary is made of: a bill of materials in CycloneDX's form, and the licences. Both come from
// what Go noted in the binary, so they tell of that very file; the licences' texts are those in the module cache.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

func main() {
	binary := flag.String("binary", "", "the program")
	sbom := flag.String("sbom", "", "file to write the bill of materials to")
	licences := flag.String("licences", "", "file to write the list of licences to")
	flag.Parse()
	if err := run(*binary, *sbom, *licences); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// permissive are the licences that ask for no more than their text to be passed on. MPL asks for changes to its own files.
var permissive = []string{"MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MPL-2.0", "0BSD", "Unlicense"}

// module is a module in the binary, with its licences.
type module struct {
	*debug.Module
	licences []string
}

func run(binary, sbom, licences string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	modules := []module{{Module: &debug.Module{Path: "std", Version: info.GoVersion}, licences: []string{"BSD-3-Clause"}}}
	var problems []error
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		found, err := licencesOf(m)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
		}
		modules = append(modules, module{m, found})
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := writeBill(binary, sbom, info, modules); err != nil {
		return err
	}
	return writeLicences(licences, modules)
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([-.].*)?$`)

// sure is the share of a file that must be a known licence, in percent: copyright lines and preambles are the rest.
const sure = 75

// licencesOf finds the licences in a module's top folder.
func licencesOf(m *debug.Module) ([]string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version).Output()
	if err != nil {
		return nil, err
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(downloaded.Dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(downloaded.Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		for _, match := range licensecheck.Scan(text).Match {
			if licensecheck.Scan(text).Percent >= sure && !match.IsURL && !slices.Contains(found, match.ID) {
				found = append(found, match.ID)
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no licence is recognised: look at it, and add what it is to tools/sbom")
	}
	for _, id := range found {
		if !slices.Contains(permissive, id) {
			return nil, fmt.Errorf("the licence %s is not permissive: do without the module", id)
		}
	}
	slices.Sort(found)
	return found, nil
}

func writeBill(binary, file string, info *debug.BuildInfo, modules []module) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: "memsidecar", Type: cdx.ComponentTypeApplication, Name: info.Path,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}}
	components := make([]cdx.Component, len(modules))
	for i, m := range modules {
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl, Licenses: &cdx.Licenses{}}
		for _, id := range m.licences {
			*c.Licenses = append(*c.Licenses, cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
		// What go.sum has is a SHA-256 of the module's files, in base64.
		if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(raw) == sha256.Size {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
		components[i] = c
	}
	bill.Components = &components
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	err = cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return errors.Join(err, out.Close())
}

func writeLicences(file string, modules []module) error {
	var text strings.Builder
	text.WriteString("# Licences of what is in the binary\n\n| module | version | licence |\n|---|---|---|\n")
	for _, m := range modules {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(m.licences, ", "))
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}
