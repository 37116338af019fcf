// Output rows over clusters of as many elements as the filter has rows; in a cluster, row r of the filter meets row r of the
// window, and the sums meet. Eyeriss' row stationary: "YR-P" in Kwon et al., MICRO 2019. (The file of that name in MAESTRO
// maps columns instead, and an element then gets less than a window.)
Dataflow {
  TemporalMap(2,2) K;
  TemporalMap(2,2) C;
  SpatialMap(Sz(R),1) Y;
  TemporalMap(Sz(S),1) X;
  TemporalMap(Sz(R),Sz(R)) R;
  TemporalMap(Sz(S),Sz(S)) S;
  Cluster(Sz(R), P);
  SpatialMap(1,1) Y;
  SpatialMap(1,1) R;
}
