//go:build race

package offheap

func init() { raceEnabled = true }
