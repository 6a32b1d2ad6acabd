package ruletext

import (
	"fmt"
	"iter"
	"os"
	"strings"
)

// Bounds of a text: its rules and its bytes.
const (
	MaxRules = 64
	MaxText  = 64 << 10
)

// Each is the rules of a text, without remarks and empty lines.
func Each(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") { // to the line's end
				continue
			}
			for rule := range strings.SplitSeq(line, ";") {
				if rule = strings.TrimSpace(rule); rule != "" && rule[0] != '#' && !yield(rule) {
					return
				}
			}
		}
	}
}

// Lines calls add for each rule, one a line or between semicolons, without
// remarks and empty lines. An error of add names the rule.
func Lines(text string, add func(line string) error) error {
	if len(text) > MaxText {
		return fmt.Errorf("%d bytes of rules, %d at most", len(text), MaxText)
	}
	n := 0
	for line := range Each(text) {
		if n++; n > MaxRules {
			return fmt.Errorf("more than %d rules", MaxRules)
		}
		if err := add(line); err != nil {
			return fmt.Errorf("rule %d, %q: %w", n, line, err)
		}
	}
	return nil
}

// Expand returns the rules between semicolons, a line each, and in place of
// @FILE those of the file.
func Expand(text string) (string, error) {
	parts := strings.Split(text, ";")
	for i, part := range parts {
		path, ok := strings.CutPrefix(strings.TrimSpace(part), "@")
		if !ok {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return "", err
		case !info.Mode().IsRegular() || info.Size() > MaxText:
			return "", fmt.Errorf("%s is no file of rules: %d bytes at most", path, MaxText)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		parts[i] = string(b)
	}
	return strings.Join(parts, "\n"), nil
}

// Words calls set for each word of a rule, between spaces or commas, with what
// stands behind its = if it has one. A word that is given twice is an error.
func Words(line string, set func(word, key, value string, has bool) error) error {
	seen := map[string]bool{}
	for word := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(" ,\t\r", c) }) {
		key, value, has := strings.Cut(word, "=")
		if seen[key] {
			return fmt.Errorf("%q is given twice", key)
		}
		seen[key] = true
		if err := set(word, key, value, has); err != nil {
			return err
		}
	}
	return nil
}
