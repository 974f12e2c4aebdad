//go:build race

package cache

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const raceEnabled = true

// TestPlantedRace shows that the race detector sees what happens in a shard's memory: in a process of
// its own it has a writer that is not as careful as put.
func TestPlantedRace(t *testing.T) {
	const plant = "BONSAI_PLANT_RACE"
	if os.Getenv(plant) != "" {
		c := newCache(t, MinSize, 0)
		s, buf := &c.shards[0], c.NewBuf()
		done := make(chan bool)
		go func() {
			copy(s.mem[100:], "careless")
			close(done)
		}()
		copyOut(buf, s.mem, 96, 120)
		<-done
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlantedRace$")
	cmd.Env = append(os.Environ(), plant+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "DATA RACE") {
		t.Errorf("the race was not seen: %v\n%s", err, out)
	}
}
