Constant Tile 16;
Network small {
  Layer first {
    Type: CONV
    Stride { X: 2, Y: 2 }
    Dimensions { K: 64, C: 3, R: 7, S: 7, Y: 224, X: 224 }
    Dataflow {
      SpatialMap(1,1) K;
      TemporalMap(Tile,Tile) C;
      TemporalMap(8+Sz(S)-1,8) X;
      Cluster(8, P);
      SpatialMap(Sz(S),1) X;
    }
  }
  Layer second { Type: DSCONV Dimensions { K: 1, C: 32, R: 3, S: 3, Y': 28, X': 28 } Stride { X: 2, Y: 2 } }
}
