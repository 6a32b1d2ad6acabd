//go:build linux || darwin

package stats

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzAnswer: a reading that is taken of any answer can be shown and written.
func FuzzAnswer(f *testing.F) {
	good, _ := json.Marshal(answer{Version: version, PID: 1, Devices: []Device{example()}})
	f.Add(append(good, '\n'))
	for _, s := range []string{`{"version":1,"devices":[{"ports":[{"counters":{"drop_x":1}}]}]}`, `{"version":9}`, `null`, ``} {
		f.Add([]byte(s + "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseAnswer(bytes.NewReader(text), 0)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WritePrometheus(&b, list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			if d.Name != clean(d.Name) {
				t.Fatalf("%q is not clean", d.Name)
			}
			for _, p := range d.Ports {
				p.Counters.Summarize()
				p.Counters.Drops()
			}
		}
	})
}
