package serve

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestHistogramBuckets(t *testing.T) {
	for i := 1; i < HistogramBuckets-1; i++ {
		low, high := HistogramBound(i-1), HistogramBound(i)
		if high <= low || float64(high)/float64(low) > 1.2501 {
			t.Errorf("bucket %d goes from %v to %v", i, low, high)
		}
		for _, d := range []time.Duration{low, (low + high) / 2, high - 1} {
			if got := bucketOf(d); got != i {
				t.Errorf("%v: got bucket %d, want %d", d, got, i)
			}
		}
	}
	for d, want := range map[time.Duration]int{-1: 0, 0: 0, 1<<histogramMin - 1: 0, time.Hour: HistogramBuckets - 1} {
		if got := bucketOf(d); got != want {
			t.Errorf("%v: got bucket %d, want %d", d, got, want)
		}
	}
}

func TestHistogramQuantile(t *testing.T) {
	var d durations
	for range 1000 {
		d.add(time.Duration(rand.IntN(1000))*time.Microsecond, 1)
	}
	d.add(time.Second, 2)
	var h Histogram
	d.addTo(&h)
	if got := h.Count(); got != 1002 {
		t.Errorf("got count %d, want 1002", got)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.9: 900 * time.Microsecond, 0.9995: time.Second} {
		if got := h.Quantile(q); got < want*3/4 || got > want*3/2 {
			t.Errorf("quantile %v: got %v, want about %v", q, got, want)
		}
	}
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("got %v of nothing, want 0", got)
	}
}
