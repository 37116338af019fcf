// Input channels over all elements, which add up one output between them; nothing stays in an element. "C-P" (no local
// reuse) in Kwon et al., MICRO 2019, nlr in MAESTRO.
Dataflow {
  TemporalMap(1,1) K;
  TemporalMap(Sz(R),1) Y;
  TemporalMap(Sz(S),1) X;
  TemporalMap(Sz(R),Sz(R)) R;
  TemporalMap(Sz(S),Sz(S)) S;
  SpatialMap(1,1) C;
}
