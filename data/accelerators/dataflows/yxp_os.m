// Output rows over clusters of 8, output columns over the elements of a cluster; an element keeps its output while windows
// of all input channels pass. ShiDianNao's dataflow: "YX-P" in Kwon et al., MICRO 2019, yxp_os (also shi) in MAESTRO.
Dataflow {
  TemporalMap(1,1) K;
  TemporalMap(1,1) C;
  SpatialMap(Sz(R),1) Y;
  TemporalMap(8+Sz(S)-1,8) X;
  Cluster(8, P);
  SpatialMap(Sz(S),1) X;
  TemporalMap(Sz(R),Sz(R)) R;
  TemporalMap(Sz(S),Sz(S)) S;
}
