package doctor

import "testing"

func FuzzFeatures(f *testing.F) {
	f.Add([]byte("\x24\x00\x04\x80\x04\x00\x01\x00\x1c\x00\x03\x80\x18\x00\x01\x80\x08\x00\x01\x00\x0e\x00\x00\x00\x0b\x00\x02\x00rx-gro\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name := range parseFeatures(b) {
			if name == "" {
				t.Fatal("a feature without a name")
			}
		}
		if v := verdictOf(b); v == nil {
			t.Fatal("no verdict")
		}
	})
}
